"""Every operation that writes files uses the table's codec, and encodes files as `WriterProperties` request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import (
    BloomFilterProperties,
    ColumnProperties,
    DeltaTable,
    InvalidArgumentError,
    WriterProperties,
    begin_write,
    write_deltalake,
)

ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [f"name {number % 10}" for number in range(1000)],
        "x": [number / 7 for number in range(1000)],
        "s": [{"a": number, "b": "b"} for number in range(1000)],
    }
)
ZSTD = WriterProperties(compression="ZSTD", compression_level=7)


def footers(table: DeltaTable) -> list[Any]:
    root = table.table_uri.removeprefix("file://")
    paths = pa.table(table.files(columns=["path"]))["path"].to_pylist()
    return [pq.ParquetFile(Path(root) / path) for path in paths]


def codecs(table: DeltaTable) -> set[str]:
    groups = [file.metadata.row_group(0) for file in footers(table)]
    return {group.column(index).compression for group in groups for index in range(group.num_columns)}


@pytest.mark.parametrize(
    ("codec", "name", "found"),
    [
        ("zstd", ".zstd.parquet", "ZSTD"),
        ("GZIP", ".gz.parquet", "GZIP"),
        ("brotli", ".br.parquet", "BROTLI"),
        ("lz4", ".lz4hadoop.parquet", "UNKNOWN"),
        ("lz4_raw", ".lz4raw.parquet", "LZ4"),
        ("uncompressed", ".c000.parquet", "UNCOMPRESSED"),
        ("none", ".c000.parquet", "UNCOMPRESSED"),
        ("snappy", ".snappy.parquet", "SNAPPY"),
    ],
)
def test_the_codec_of_the_table(tmp_path: Path, codec: str, name: str, found: str) -> None:
    """All operations that write files use the table's codec, and pyarrow reads the files."""
    configuration = {"delta.parquet.compression.codec": codec}
    write_deltalake(tmp_path, ROWS, configuration=configuration)
    table = DeltaTable(tmp_path)
    assert codecs(table) == {found}
    [path] = pa.table(table.files(columns=["path"]))["path"].to_pylist()
    assert path.endswith(name)
    assert pq.read_table(tmp_path / path).num_rows == 1000
    table.update(updates={"x": "x + 1"}, predicate="id = 3")
    assert codecs(table) == {found}
    merge = table.merge(ROWS.slice(0, 5), "target.id = source.id")
    merge.when_matched_update_all().execute()
    write_deltalake(table, ROWS, mode="append")
    table.update_incremental()
    assert table.optimize.compact()["numFilesRemoved"] > 1
    assert codecs(table) == {found}
    assert table.optimize.z_order(["id"])["numFilesAdded"] == 1
    assert codecs(table) == {found}
    assert table.count() == pa.table(table.to_arrow()).num_rows == 2000


VERBS: dict[str, Callable[[DeltaTable, WriterProperties], Any]] = {
    "append": lambda table, how: write_deltalake(
        table.table_uri, ROWS, mode="overwrite", writer_properties=how
    ),
    "create": lambda table, how: DeltaTable.create(
        table.table_uri, data=ROWS, mode="overwrite", writer_properties=how
    ),
    "delete": lambda table, how: table.delete("id = 1", how),
    "update": lambda table, how: table.update({"x": "1"}, writer_properties=how),
    "merge": lambda table, how: (
        table.merge(ROWS, "target.id = source.id", writer_properties=how).when_matched_update_all().execute()
    ),
    "compact": lambda table, how: table.optimize.compact(writer_properties=how),
    "z_order": lambda table, how: table.optimize.z_order("id", writer_properties=how),
    "distributed": lambda table, how: distributed(table, how),
}


def distributed(table: DeltaTable, how: WriterProperties) -> None:
    write = begin_write(table.table_uri, mode="overwrite", writer_properties=how)
    assert write is not None
    fragment = write.task.write(ROWS)
    write.commit([fragment])


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_writer_properties(tmp_path: Path, verb: str) -> None:
    write_deltalake(tmp_path, ROWS.slice(0, 500))
    write_deltalake(tmp_path, ROWS.slice(500), mode="append")
    table = DeltaTable(tmp_path)
    how = WriterProperties(compression="ZSTD", compression_level=7, max_row_group_size=300)
    VERBS[verb](table, how)
    table.update_incremental()
    written = [file for file in footers(table) if file.metadata.row_group(0).column(0).compression == "ZSTD"]
    assert written
    assert all(file.metadata.row_group(0).num_rows <= 300 for file in written)
    assert len(written) == len(footers(table)) or verb == "delete"


def test_sizes_and_columns(tmp_path: Path) -> None:
    how = WriterProperties(
        compression="GZIP",
        compression_level=9,
        max_row_group_size=400,
        data_page_row_count_limit=100,
        write_batch_size=50,
        default_column_properties=ColumnProperties(dictionary_enabled=False, statistics_enabled="PAGE"),
        column_properties={
            "ID": ColumnProperties(
                encoding="DELTA_BINARY_PACKED",
                bloom_filter_properties=BloomFilterProperties(True, fpp=0.05, ndv=100),
            ),
            "name": ColumnProperties(dictionary_enabled=True, statistics_enabled="NONE"),
            "s.b": ColumnProperties(encoding="DELTA_BYTE_ARRAY"),
            "x": ColumnProperties(encoding="BYTE_STREAM_SPLIT", statistics_enabled="CHUNK"),
        },
    )
    configuration = {"delta.dataSkippingStatsColumns": "id"}
    write_deltalake(tmp_path, ROWS, writer_properties=how, configuration=configuration)
    table = DeltaTable(tmp_path)
    [file] = footers(table)
    groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [400, 400, 200]
    columns = {groups[0].column(index).path_in_schema: groups[0].column(index) for index in range(5)}
    assert "DELTA_BINARY_PACKED" in columns["id"].encodings
    assert columns["id"].has_offset_index
    assert columns["id"].statistics.min == 0
    assert columns["name"].has_dictionary_page
    assert columns["name"].statistics is None
    assert "DELTA_BYTE_ARRAY" in columns["s.b"].encodings
    assert "BYTE_STREAM_SPLIT" in columns["x"].encodings
    assert not columns["x"].has_column_index
    assert not columns["s.a"].has_dictionary_page
    assert pa.table(table.to_arrow()).sort_by("id").to_pylist() == ROWS.to_pylist()
    assert table.min_max("id") == (0, 999)


def test_bounds_of_the_log_stay(tmp_path: Path) -> None:
    """Even with `NONE`, files have the statistics that are also written to the log."""
    none = WriterProperties(default_column_properties=ColumnProperties(statistics_enabled="NONE"))
    write_deltalake(tmp_path, ROWS, writer_properties=none)
    assert DeltaTable(tmp_path).min_max("id") == (0, 999)


def test_column_mapping_and_partitions(tmp_path: Path) -> None:
    rows = pa.table({"a b": [1, 2], "p": ["x", "y"]})
    configuration = {"delta.columnMapping.mode": "name"}
    column = ColumnProperties(encoding="DELTA_BINARY_PACKED", dictionary_enabled=False)
    how = WriterProperties(column_properties={"a b": column, "p": ColumnProperties()})
    write_deltalake(tmp_path, rows, partition_by="p", configuration=configuration, writer_properties=how)
    for file in footers(DeltaTable(tmp_path)):
        assert "DELTA_BINARY_PACKED" in file.metadata.row_group(0).column(0).encodings


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: WriterProperties(compression="LZO"), "compression cannot be 'LZO'"),  # type: ignore[arg-type]
        (
            lambda: WriterProperties(compression="ZSTD", compression_level=50),
            "compression_level cannot be 50",
        ),
        (lambda: WriterProperties(compression_level=3), "codec snappy has no compression_level"),
        (lambda: WriterProperties(max_row_group_size=0), "max_row_group_size cannot be 0"),
        (lambda: one("nme"), "there is no column 'nme'"),
        (lambda: one("name", encoding="DELTA_BINARY_PACKED"), "cannot have the encoding"),
        (lambda: one("id", encoding="RLE"), "cannot have the encoding"),
        (lambda: one("x", bloom_filter_properties=BloomFilterProperties(True)), "cannot have a Bloom filter"),
        (lambda: one("id", bloom_filter_properties=BloomFilterProperties(True, fpp=2.0)), "fpp"),
        (lambda: one("id", statistics_enabled="SOME"), "statistics_enabled cannot be 'SOME'"),
        (lambda: {"compression": "ZSTD"}, "writer_properties cannot be"),
    ],
)
def test_what_cannot_be(tmp_path: Path, make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words) as caught:
        write_deltalake(tmp_path, ROWS, writer_properties=make())
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def one(name: str, **how: Any) -> WriterProperties:
    return WriterProperties(column_properties={name: ColumnProperties(**how)})


def test_a_codec_that_no_table_can_have(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"delta.parquet.compression.codec.*'lzo'"):
        write_deltalake(tmp_path, ROWS, configuration={"delta.parquet.compression.codec": "lzo"})
