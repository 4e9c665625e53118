"""DELETE, UPDATE and MERGE give the same rows, metrics and change data feed as with the JVM connector.

Both engines execute each statement on their own copy of a table. The connector reads the results of both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable
from tests.interop.conftest import Jvm
from tests.interop.statements import same
from tests.python.statement_support import (
    FEED,
    TRACKED,
    VECTORS,
    Row,
    content,
    created,
    in_order,
    rows_of,
)

FILES: list[list[Row]] = [
    [(1, "a", 1), (2, "a", None), (3, None, 3)],
    [(4, "b", 4), (5, "b", 5), (6, "c", 6)],
    [(7, "c", 7), (None, "c", 8), (9, None, None)],
]
SOURCE: list[Row] = [(2, "a", 20), (4, "b", None), (8, "d", 80), (None, "n", 1), (9, "z", 90)]


def _sql(value: int | str | None) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


_VALUES = ", ".join("(" + ", ".join(_sql(value) for value in row) + ")" for row in SOURCE)
SOURCE_SQL = f"(SELECT CAST(id AS LONG) id, p, CAST(n AS LONG) n FROM VALUES {_VALUES} AS v(id, p, n))"


def delete(predicate: str | None) -> tuple[str, Callable[[DeltaTable], object]]:
    where = "" if predicate is None else f" WHERE {predicate}"
    return f"DELETE FROM {{table}}{where}", lambda table: table.delete(predicate)


def update(values: dict[str, str], predicate: str | None) -> tuple[str, Callable[[DeltaTable], object]]:
    where = "" if predicate is None else f" WHERE {predicate}"
    assigned = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"UPDATE {{table}} SET {assigned}{where}", lambda table: table.update(values, predicate=predicate)


Clause = tuple[str, str | None, dict[str, str] | None]
"""The affected rows, the condition, and the new values; None for a DELETE."""


def merge(condition: str, *clauses: Clause) -> tuple[str, Callable[[DeltaTable], object]]:
    text = f"MERGE INTO {{table}} AS target USING {{source}} AS source ON {condition}"
    for when, predicate, values in clauses:
        then = "DELETE"
        if values is not None and when == "NOT MATCHED":
            then = f"INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"
        elif values is not None:
            then = "UPDATE SET " + ", ".join(f"{name} = {value}" for name, value in values.items())
        text += f" WHEN {when}{f' AND {predicate}' if predicate else ''} THEN {then}"

    def run(table: DeltaTable) -> object:
        merger = table.merge(rows_of(SOURCE), condition)
        for when, predicate, values in clauses:
            if when == "NOT MATCHED":
                assert values is not None
                merger.when_not_matched_insert(values, predicate)
            elif when == "MATCHED" and values is not None:
                merger.when_matched_update(values, predicate)
            elif when == "MATCHED":
                merger.when_matched_delete(predicate)
            elif values is not None:
                merger.when_not_matched_by_source_update(values, predicate)
            else:
                merger.when_not_matched_by_source_delete(predicate)
        return merger.execute()

    return text, run


KEY = "target.id = source.id"
ALL = {"id": "source.id", "p": "source.p", "n": "source.n"}
STATEMENTS = [
    delete("n >= 5"),
    delete("p = 'c' OR n IS NULL"),
    delete("p = 'b'"),
    delete("id = 77"),
    delete("id IN (1, 2, 3)"),
    update({"n": "n + 10"}, "id < 5"),
    update({"p": "'x'", "n": "id"}, "p IS NULL OR n = 8"),
    update({"p": "CASE WHEN n > 3 THEN 'big' END"}, None),
    merge(KEY, ("MATCHED", None, ALL), ("NOT MATCHED", None, ALL)),
    merge(KEY, ("MATCHED", "source.n IS NULL", None), ("MATCHED", "target.n IS NULL", {"n": "source.n"})),
    merge(KEY, ("NOT MATCHED", "source.n > 5", {"id": "source.id", "n": "source.n"})),
    merge(KEY, ("MATCHED", None, None)),
    merge(
        "target.id <=> source.id AND target.n IS NOT NULL",
        ("MATCHED", "target.p = 'a'", None),
        ("MATCHED", None, {"n": "coalesce(source.n, -1)", "p": "source.p"}),
        ("NOT MATCHED", "source.p = 'd'", ALL),
        ("NOT MATCHED BY SOURCE", "target.n > 5", {"n": "-target.n"}),
        ("NOT MATCHED BY SOURCE", "target.p = 'a'", None),
    ),
    merge(KEY, ("NOT MATCHED BY SOURCE", None, None)),
]

TABLES: list[tuple[dict[str, str], list[str] | None]] = [
    (FEED, None),
    ({**FEED, **VECTORS}, ["p"]),
    ({**FEED, **TRACKED}, ["p"]),
    ({**FEED, **VECTORS}, None),
    ({**VECTORS, **FEED, "delta.columnMapping.mode": "name"}, ["p"]),
]


# Each statement runs on two of the tables, which follow each other in `TABLES`.
@pytest.mark.parametrize("second", [0, 1])
@pytest.mark.parametrize("number", range(len(STATEMENTS)))
def test_a_statement_does_what_the_connector_does(tmp_path: Path, jvm: Jvm, number: int, second: int) -> None:
    sql, run = STATEMENTS[number]
    properties, partition_by = TABLES[(number + second) % len(TABLES)]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    table = created(ours, FILES, properties, partition_by)
    shutil.copytree(ours, theirs)
    before = table.version()
    run(table)
    jvm.run(sql.format(table=f"delta.`{theirs}`", source=SOURCE_SQL))
    if not same(jvm, ours, theirs, before, sql) or number % 4:
        return
    # The connector continues to write to the table.
    jvm.run(f"UPDATE delta.`{ours}` SET n = 0 WHERE id = 1")
    jvm.run(f"UPDATE delta.`{theirs}` SET n = 0 WHERE id = 1")
    assert content(ours) == content(theirs)


def test_ids_of_changed_rows_are_read_by_the_connector(tmp_path: Path, jvm: Jvm) -> None:
    """Protocol, "Row Tracking"."""
    for name, properties in (("copied", {}), ("vectors", VECTORS)):
        path = tmp_path / name
        table = created(path, FILES, {**TRACKED, **properties})
        table.update({"n": "0"}, predicate="id IN (2, 4)")
        merge(KEY, ("MATCHED", "source.n = 90", ALL), ("NOT MATCHED", None, ALL))[1](table)
        table.delete("id = 1")
        ours = pa.table(table.to_arrow(row_ids=True)).to_pylist()
        sql = f"SELECT id, p, n, _metadata.row_id, _metadata.row_commit_version FROM delta.`{path}`"
        theirs = jvm.query(sql).to_pylist()
        assert in_order(row.values() for row in ours) == in_order(row.values() for row in theirs)
