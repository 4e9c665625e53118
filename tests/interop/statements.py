"""Compares the effects of a statement that deltalog and the JVM connector execute on their own copies of a table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from deltalog import DeltaTable
from tests.interop.conftest import Jvm
from tests.python.place import actions
from tests.python.statement_support import content, feed, in_order

ROW_METRICS = [
    "numDeletedRows",
    "numUpdatedRows",
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceDeleted",
]


def info(path: Path, version: int) -> dict[str, Any]:
    (found,) = [line["commitInfo"] for line in actions(path, version) if "commitInfo" in line]
    return dict(found)


def changes(jvm: Jvm, path: Path, version: int) -> Counter[tuple[Any, ...]]:
    """Returns the changes of a version, as the connector reads them."""
    names = ", ".join(f"`{field.name}`" for field in DeltaTable(path).schema().fields)
    sql = f"SELECT _change_type, {names} FROM table_changes_by_path('{path}', {version}, {version})"
    return Counter(tuple(row.values()) for row in jvm.query(sql).to_pylist())


def same(jvm: Jvm, ours: Path, theirs: Path, before: int, sql: str) -> bool:
    """Compares the rows, the change data feed, the operation and the metrics of the version after `before`. Returns
    whether this version exists.
    """
    table, newest = DeltaTable(ours), DeltaTable(theirs)
    assert newest.version() == table.version(), sql
    assert content(table) == content(newest), sql
    seen = jvm.query(f"SELECT * FROM delta.`{ours}`").to_pylist()
    assert in_order(row.values() for row in seen) == content(table), sql
    if table.version() == before:
        return False
    expected = feed(newest, before + 1)
    assert feed(table, before + 1) == expected, sql
    assert changes(jvm, ours, before + 1) == changes(jvm, theirs, before + 1) == expected, sql
    mine, other = info(ours, before + 1), info(theirs, before + 1)
    assert mine["operation"] == other["operation"]
    assert set(mine["operationParameters"]) == set(other["operationParameters"])
    for name, value in other["operationParameters"].items():
        found = json.loads(mine["operationParameters"][name])
        assert len(found) == len(json.loads(value)), name
    for name in ROW_METRICS:
        found, wanted = mine["operationMetrics"].get(name), other["operationMetrics"].get(name)
        assert found == wanted, (name, sql)
    assert set(other["operationMetrics"]) <= {*mine["operationMetrics"], "materializeSourceTimeMs"}, sql
    return True
