"""The JVM connector and deltalog write the same files in tables with Iceberg compatibility.

PROTOCOL, "Iceberg Compatibility V1", "Iceberg Compatibility V2".
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import ArrayType, DeltaTable, Field, write_deltalake
from tests.golden.canonical import rows
from tests.iceberg import file_ids, log_ids
from tests.interop.conftest import Jvm

COLUMNS = "id BIGINT, p STRING, l ARRAY<ARRAY<INT>>, m MAP<STRING, STRUCT<x: BIGINT, deep: ARRAY<STRING>>>"
INNER = pa.struct([("x", pa.int64()), ("deep", pa.list_(pa.string()))])
DATA = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "p": ["a", None],
        "l": pa.array([[[1, None], []], None], pa.list_(pa.list_(pa.int32()))),
        "m": pa.array([[("k", {"x": 1, "deep": ["a"]})], []], pa.map_(pa.string(), INNER)),
    }
)
THEIR_ROW = "3, 'b', array(array(7)), map('k', named_struct('x', 2L, 'deep', array('b')))"


@pytest.mark.parametrize("creator", ["deltalog", "the JVM connector"])
def test_all_files_have_the_ids_of_the_log(jvm: Jvm, tmp_path: Path, creator: str) -> None:
    table = f"delta.`{tmp_path}`"
    properties = {"delta.enableIcebergCompatV2": "true"}
    if creator == "deltalog":
        write_deltalake(tmp_path, DATA, partition_by=["p"], configuration=properties)
    else:
        jvm.run(
            f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p) "
            "TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')"
        )
        write_deltalake(tmp_path, DATA, mode="append")
    jvm.run(f"INSERT INTO {table} VALUES ({THEIR_ROW})")
    before = log_ids(DeltaTable(tmp_path))
    assert len(before) == len(set(before.values())) == 11
    for uri in DeltaTable(tmp_path).file_uris():
        assert file_ids(Path(uri.removeprefix("file://"))) == before, uri
    # Columns of both, with ids of both.
    DeltaTable(tmp_path).alter.add_columns([Field("ours", ArrayType("long"))])
    jvm.run(f"ALTER TABLE {table} ADD COLUMNS (theirs MAP<STRING, ARRAY<INT>>)")
    after = log_ids(DeltaTable(tmp_path))
    assert before.items() <= after.items()
    assert len(after) == len(set(after.values())) == 11 + 2 + 4
    write_deltalake(tmp_path, DATA, mode="append", schema_mode="merge")
    jvm.run(f"INSERT INTO {table} VALUES ({THEIR_ROW}, array(1L), map('a', array(2)))")
    for uri in DeltaTable(tmp_path).file_uris():
        assert file_ids(Path(uri.removeprefix("file://"))).items() <= after.items(), uri
    ours = rows(pa.table(DeltaTable(tmp_path).to_arrow()))
    assert len(ours) == 6
    assert rows(jvm.query(f"SELECT * FROM {table}")) == ours
