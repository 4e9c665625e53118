"""In S3, every statement gives the same rows as on the local file system, and other writers read the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, Schema, write_deltalake

from .s3_server import S3Server

ROWS = pa.table(
    {"id": range(1000), "part": [str(number % 3) for number in range(1000)], "text": ["x" * 50] * 1000}
)


def rows(table: DeltaTable) -> pa.Table:
    return pa.table(table.to_arrow()).sort_by("id")


def history(uri: str, options: dict[str, str]) -> Iterator[tuple[int, pa.Table]]:
    """Creates a table that uses many features, and yields each version with its rows."""
    vectors = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "4"}
    write_deltalake(uri, ROWS, partition_by=["part"], configuration=vectors, storage_options=options)
    table = DeltaTable(uri, storage_options=options)
    yield table.version(), rows(table)
    write_deltalake(table, ROWS.slice(0, 10), mode="append")
    table.update_incremental()
    yield table.version(), rows(table)
    table.delete("id % 10 = 3")
    yield table.version(), rows(table)
    table.update({"text": "'changed'"}, predicate="id < 20")
    yield table.version(), rows(table)
    source = pa.table({"id": [5, 5000], "part": ["2", "0"], "text": ["merged", "new"]})
    merge = table.merge(source, "target.id = source.id", source_alias="source", target_alias="target")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    yield table.version(), rows(table)
    table.alter.add_columns(Schema.from_arrow(pa.schema([("more", pa.int32())])).fields)
    yield table.version(), rows(table)
    write_deltalake(table, ROWS.slice(0, 5), mode="overwrite")
    table.update_incremental()
    yield table.version(), rows(table)


def test_versions_equal_the_versions_of_a_local_table(s3: S3Server, tmp_path: Path) -> None:
    uri = "s3://tables/a b/100%25/t"
    there = dict(history(uri, s3.options()))
    here = dict(history(str(tmp_path), {}))
    assert there.keys() == here.keys()
    for version, expected in here.items():
        assert there[version] == expected, version
        # The table is read again, from checkpoints, vectors and ranges.
        again = DeltaTable(uri, version=version, storage_options=s3.options())
        assert rows(again) == expected, version
    assert any("checkpoint" in key for key in s3.keys("tables"))
    assert any("deletion_vector" in key for key in s3.keys("tables"))
    assert s3.open_uploads("tables") == []


def test_deltalake_reads_what_we_write_and_the_reverse(s3: S3Server) -> None:
    write_deltalake("s3://tables/t", ROWS, storage_options=s3.options())
    theirs = deltalake.DeltaTable("s3://tables/t", storage_options=s3.options())
    assert theirs.to_pyarrow_table().sort_by("id") == ROWS
    deltalake.write_deltalake("s3://tables/t", ROWS, mode="append", storage_options=s3.options())
    ours = DeltaTable("s3://tables/t", storage_options=s3.options())
    assert ours.version() == 1
    assert ours.count() == 2000
    ours.delete("id >= 10")
    theirs.update_incremental()
    assert theirs.to_pyarrow_table().num_rows == 20


def test_a_large_file_is_written_in_parts(s3: S3Server) -> None:
    """A large file is written and read in parts: no request reads the whole file."""
    noise = random.Random(7)  # noqa: S311
    texts = [noise.randbytes(1000).hex() for _ in range(15_000)]
    data = pa.table({"id": range(len(texts)), "text": texts})
    write_deltalake("s3://tables/t", data, storage_options=s3.options())
    written = s3.take_requests()
    assert sum(request["kind"] == "upload_part" for request in written) >= 2
    table = DeltaTable("s3://tables/t", storage_options=s3.options())
    assert rows(table) == data
    file = [request for request in s3.requests() if request["key"].endswith(".parquet")]
    assert all(request["range"] for request in file)
    s3.take_requests()
    ids = pa.table(table.to_arrow(columns=["id"]))
    assert ids.num_rows == len(texts)
    read = sum(request["bytes_out"] for request in s3.requests() if request["key"].endswith(".parquet"))
    assert read < 2_000_000


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_every_spelling_names_the_same_table(s3: S3Server, scheme: str) -> None:
    write_deltalake("s3://tables/t", ROWS, storage_options=s3.options())
    table = DeltaTable(f"{scheme}://tables/t/", storage_options=s3.options())
    assert table.table_uri == "s3://tables/t"
    write_deltalake(table, ROWS, mode="append")
    assert DeltaTable("s3://tables/t", storage_options=s3.options()).count() == 2000
