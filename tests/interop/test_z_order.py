"""deltalog and the JVM connector take turns in ordering the rows of a table by several columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm

COLUMNS = ["id", "s", "d"]


def ours(path: Path) -> list[str]:
    return rows(pa.table(deltalog.DeltaTable(path).to_arrow()))


@pytest.mark.parametrize("mapping", [pytest.param("none", marks=pytest.mark.thorough), "name"])
def test_each_reads_and_continues_what_the_other_has_ordered(jvm: Jvm, tmp_path: Path, mapping: str) -> None:
    """The rows and row ids do not change, and both engines describe the operation in the same way."""
    table = f"delta.`{tmp_path}`"
    jvm.run(
        f"""CREATE TABLE {table} (id BIGINT, p BIGINT, s STRING, d DECIMAL(20, 3), f DOUBLE)
        USING delta PARTITIONED BY (p) TBLPROPERTIES (
        'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true',
        'delta.columnMapping.mode' = '{mapping}')"""
    )
    jvm.run(
        f"""INSERT INTO {table} SELECT id * 7919 % 5000, id % 3, IF(id % 7 = 0, NULL, concat('s', id * 31 % 997)),
        id * 13 % 501, IF(id % 5 = 0, DOUBLE('NaN'), id * 17 % 101) FROM range(0, 5000, 1, 4)"""
    )
    jvm.run(f"DELETE FROM {table} WHERE id % 7 = 1")
    tracked = f"SELECT id, s, _metadata.row_id, _metadata.row_commit_version FROM {table}"
    expected, ids = rows(jvm.query(f"SELECT * FROM {table}")), rows(jvm.query(tracked))
    newest = deltalog.DeltaTable(tmp_path)
    size = sum(pa.table(newest.files())["size"].to_pylist()) // 9
    mine = newest.optimize.z_order(COLUMNS, target_size=size)
    assert mine["numFilesAdded"] >= 9
    assert rows(jvm.query(f"SELECT * FROM {table}")) == expected == ours(tmp_path)
    assert rows(jvm.query(tracked)) == ids
    found = jvm.query(f"SELECT count(*) AS n FROM {table} WHERE d = 13 AND s > 's5'")["n"].to_pylist()
    assert found == [newest.count("d = 13 AND s > 's5'")]
    jvm.run(f"DELETE FROM {table} WHERE id % 11 = 3")
    expected = rows(jvm.query(f"SELECT * FROM {table}"))
    ids = rows(jvm.query(tracked))
    jvm.run(f"OPTIMIZE {table} ZORDER BY ({', '.join(COLUMNS)})")
    assert ours(tmp_path) == expected
    deltalog.DeltaTable(tmp_path).optimize.z_order(COLUMNS)
    assert rows(jvm.query(f"SELECT * FROM {table}")) == expected
    assert rows(jvm.query(tracked)) == ids
    history = deltalog.DeltaTable(tmp_path).history()
    orders = [commit for commit in history if commit["operation"] == "OPTIMIZE"]
    last, theirs, first = orders
    assert json.loads(last["operationParameters"]["zOrderBy"]) == COLUMNS
    assert last["operationParameters"]["zOrderBy"] == theirs["operationParameters"]["zOrderBy"]
    assert first["operationParameters"]["zOrderBy"] == theirs["operationParameters"]["zOrderBy"]
    assert set(last["operationMetrics"]) <= set(theirs["operationMetrics"])
