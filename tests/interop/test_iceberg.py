"""In tables with Iceberg compatibility, the files of the JVM connector and deltalog have the same columns and field
ids.

PROTOCOL, "Iceberg Compatibility V1", "… V2", "… V3", and the feature `materializePartitionColumns`.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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


@pytest.mark.parametrize("version", ["V2", "V3"])
@pytest.mark.parametrize("creator", ["deltalog", "the JVM connector"])
def test_all_files_have_the_ids_of_the_log(jvm: Jvm, tmp_path: Path, creator: str, version: str) -> None:
    table = f"delta.`{tmp_path}`"
    properties = {f"delta.enableIcebergCompat{version}": "true"}
    if creator == "deltalog":
        write_deltalake(tmp_path, DATA, partition_by=["p"], configuration=properties)
    else:
        jvm.run(
            f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p) "
            f"TBLPROPERTIES ('delta.enableIcebergCompat{version}' = 'true')"
        )
        write_deltalake(tmp_path, DATA, mode="append")
    jvm.run(f"INSERT INTO {table} VALUES ({THEIR_ROW})")
    before = log_ids(DeltaTable(tmp_path))
    assert len(before) == len(set(before.values())) == 11
    for uri in DeltaTable(tmp_path).file_uris():
        assert file_ids(Path(uri.removeprefix("file://"))) == before, uri
    # deltalog adds a column, so that both engines have assigned column ids.
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


def test_copied_rows_have_the_field_ids_of_iceberg(jvm: Jvm, tmp_path: Path) -> None:
    """PROTOCOL, "Iceberg Compatibility V3": both engines write the columns for row ids and commit versions, with the
    same field ids.
    """
    table = f"delta.`{tmp_path}`"
    flat = DATA.select(["id", "p"])
    properties = {"delta.enableIcebergCompatV3": "true", "delta.enableDeletionVectors": "false"}
    write_deltalake(tmp_path, flat, configuration=properties)
    write_deltalake(tmp_path, flat, mode="append")

    def tracked() -> dict[int, tuple[int, int]]:
        theirs = jvm.query(f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table}")
        ours = pa.table(DeltaTable(tmp_path).to_arrow(columns=["id"], row_ids=True))
        assert rows(ours.rename_columns(theirs.column_names)) == rows(theirs)
        return {row["row_id"]: (row["id"], row["row_commit_version"]) for row in theirs.to_pylist()}

    def copied() -> list[dict[str, int]]:
        """Returns the field ids of the hidden columns in the files."""
        known = log_ids(DeltaTable(tmp_path))
        found = [file_ids(path) for path in tmp_path.rglob("*.parquet") if "_delta_log" not in path.parts]
        hidden = [{name: key for name, key in ids.items() if name not in known} for ids in found]
        return [ids for ids in hidden if ids]

    before = tracked()
    write_deltalake(tmp_path, flat.slice(0, 0), mode="overwrite", predicate="id = 1 and p = 'a'")
    after = tracked()
    assert after == {key: row for key, row in before.items() if row[0] != 1}
    ours = copied()
    assert [sorted(ids.values()) for ids in ours] == [[2147483539, 2147483540]]
    jvm.run(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES (7L, 'a'), (8L, 'b')")
    jvm.run(f"DELETE FROM {table} WHERE id = 7")
    tracked()
    assert {str(sorted(ids.items())) for ids in copied()} == {str(sorted(ours[0].items()))}
    assert len(copied()) == 2


def test_both_write_the_partition_columns(jvm: Jvm, tmp_path: Path) -> None:
    """Both engines write tables with the feature `materializePartitionColumns`; then the connector drops it."""
    table = f"delta.`{tmp_path}`"
    properties = {"delta.enableMaterializePartitionColumnsFeature": "true"}
    data = DATA.select(["p", "id"])
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=properties)
    jvm.run(f"INSERT INTO {table} (id, p) VALUES (3, 'b'), (4, NULL)")
    for uri in DeltaTable(tmp_path).file_uris():
        assert pq.read_schema(uri.removeprefix("file://")).names == ["id", "p"]
    assert rows(jvm.query(f"SELECT * FROM {table}")) == rows(pa.table(DeltaTable(tmp_path).to_arrow()))
    jvm.run(f"ALTER TABLE {table} DROP FEATURE materializePartitionColumns")
    found = DeltaTable(tmp_path)
    assert not found.metadata().configuration
    assert "materializePartitionColumns" not in (found.protocol().writer_features or [])
