"""The JVM connector and `deltalake` read tables with recomputed statistics, and use them to skip files.

Files are deleted before a query, to prove that the query does not read them.
"""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import deltalog
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm


@pytest.mark.parametrize("mapping", [pytest.param("none", marks=pytest.mark.thorough), "name"])
def test_the_connector_skips_files_by_computed_statistics(jvm: Jvm, tmp_path: Path, mapping: str) -> None:
    table = f"delta.`{tmp_path}`"
    jvm.run(
        f"""CREATE TABLE {table} (id BIGINT, p STRING, s STRING, f DOUBLE, d DECIMAL(20, 3), t TIMESTAMP)
        USING delta PARTITIONED BY (p) TBLPROPERTIES (
        'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true',
        'delta.columnMapping.mode' = '{mapping}', 'delta.dataSkippingNumIndexedCols' = '0')"""
    )
    for start in (0, 100, 200):
        jvm.run(
            f"""INSERT INTO {table} SELECT id, IF(id < 150, 'a', 'b'), concat('s', 1000 + id),
            IF(id = 207, DOUBLE('NaN'), id / 4), id / 8, timestamp_micros(id * 1001)
            FROM range({start}, {start + 50}, 1, 1)"""
        )
    jvm.run(f"DELETE FROM {table} WHERE id % 10 = 3 OR id = 149")
    jvm.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '32')")
    tracked = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table}"
    expected, ids = rows(jvm.query(f"SELECT * FROM {table}")), rows(jvm.query(tracked))
    newest = deltalog.DeltaTable(tmp_path)
    done = newest.recompute_statistics()
    assert (done["numUpdatedFiles"], done["numFilesByRows"]) == (3, 3)
    assert rows(jvm.query(f"SELECT * FROM {table}")) == expected
    assert rows(jvm.query(tracked)) == ids
    assert rows(pa.table(newest.to_arrow())) == expected
    # The connector writes to the table, and computes its own statistics.
    jvm.run(f"DELETE FROM {table} WHERE id = 44")
    jvm.run(f"OPTIMIZE {table} WHERE p = 'b'")
    newest = deltalog.DeltaTable(tmp_path)
    expected = rows(jvm.query(f"SELECT * FROM {table}"))
    assert rows(pa.table(newest.to_arrow())) == expected
    newest.recompute_statistics(all_files=True)
    assert rows(jvm.query(f"SELECT * FROM {table}")) == expected
    assert rows(pa.table(newest.check("rows"))) == []
    # The first file has the ids from 0 to 49.
    [first] = [file for file in pa.table(newest.files()).to_pylist() if file["stats"]["minValues"]["id"] == 0]
    conditions = ("id > 100", "s >= 's1100'", "d > 7", "f > 20", "t > timestamp_micros(60000)")

    def found() -> list[int]:
        counts = (
            jvm.query(f"SELECT count(s) AS n FROM {table} WHERE {condition}") for condition in conditions
        )
        return [count["n"].to_pylist()[0] for count in counts]

    before = found()
    assert min(before) > 80
    (tmp_path / first["path"]).rename(tmp_path / "gone")
    assert found() == before
    with pytest.raises(AssertionError, match="error"):
        jvm.query(f"SELECT count(s) AS n FROM {table} WHERE id < 3")


def test_deltalake_skips_files_by_computed_statistics(tmp_path: Path) -> None:
    none = {"delta.dataSkippingNumIndexedCols": "0"}
    for start in (0, 100):
        data = pa.table({"id": range(start, start + 10), "s": [f"s{start}"] * 10})
        deltalake.write_deltalake(tmp_path, data, mode="append", configuration=none)
    newest = deltalog.DeltaTable(tmp_path)
    newest.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "32"})
    assert newest.recompute_statistics()["numUpdatedFiles"] == 2
    [first] = [file for file in pa.table(newest.files()).to_pylist() if file["stats"]["minValues"]["id"] == 0]
    (tmp_path / first["path"]).rename(tmp_path / "gone")
    theirs = deltalake.DeltaTable(tmp_path)
    assert theirs.to_pyarrow_table(filters=[("id", ">", 50)]).num_rows == 10
