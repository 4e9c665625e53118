"""Data files that also contain the partition columns.

Protocol RFC: "Materialize Partition Columns".
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, DistributedWrite, begin_write, write_deltalake
from deltalog.errors import CommitConflictError
from tests.python.place import actions

FEATURE = "materializePartitionColumns"
BY_FEATURE = {"delta.enableMaterializePartitionColumnsFeature": "true"}
BY_PROPERTY = {"delta.writePartitionColumnsToParquet": "true"}

DATA = pa.table(
    {
        "p": ["a", "", None],
        "id": pa.array([1, 2, 3], pa.int64()),
        "day": pa.array([datetime.date(2024, 1, 1), None, datetime.date(1969, 12, 31)]),
        "d": pa.array([Decimal("1.50"), Decimal("-2.00"), None], pa.decimal128(10, 2)),
        "t": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
    }
)
BY = ["p", "day", "d", "t"]


def files(path: Path) -> list[pa.Table]:
    """Returns the data files of the newest version, each read on its own, without the log."""
    uris = DeltaTable(path).file_uris()
    return [pq.read_table(unquote(uri.removeprefix("file://")), partitioning=None) for uri in uris]


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(pa.table(DeltaTable(path).to_arrow()).to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("configuration", [BY_FEATURE, BY_PROPERTY])
@pytest.mark.parametrize("mapping", ["none", "id"])
def test_files_have_the_values_of_the_log(
    tmp_path: Path, configuration: dict[str, str], mapping: str
) -> None:
    mapped = {**configuration, "delta.columnMapping.mode": mapping}
    write_deltalake(tmp_path, DATA, partition_by=BY, configuration=mapped)
    write_deltalake(tmp_path, DATA, mode="append")
    table = DeltaTable(tmp_path)
    expected = {FEATURE} if configuration is BY_FEATURE else set()
    assert {FEATURE} & set(table.protocol().writer_features or []) == expected
    assert table.protocol().reader_features == (["columnMapping"] if mapping == "id" else None)
    names = {
        field["name"]: field["metadata"].get("delta.columnMapping.physicalName", field["name"])
        for field in json.loads(table.schema().to_json())["fields"]
    }
    found = pa.concat_tables(files(tmp_path))
    # The partition columns come last, in the order in which the table is partitioned.
    assert found.column_names == [names[name] for name in ["id", *BY]]
    stored = sorted(found.to_pylist(), key=lambda row: row[names["id"]])
    # An empty string is NULL in the log, and therefore also in the file.
    expected_rows = [{**row, "p": row["p"] or None} for row in DATA.to_pylist() for _ in range(2)]
    assert [{name: row[names[name]] for name in names} for row in stored] == expected_rows
    assert rows(tmp_path) == expected_rows
    for line in actions(tmp_path, 1):
        if "add" in line:
            stats = json.loads(line["add"]["stats"])
            assert list(stats["minValues"]) == list(stats["nullCount"]) == [names["id"]]
    if mapping == "none":
        assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 6


def test_every_writer_keeps_to_it(tmp_path: Path) -> None:
    """Files with copied rows, rewritten files, and files from several processes also have the partition columns."""
    configuration = {**BY_FEATURE, "delta.enableRowTracking": "true"}
    data = pa.table({"p": ["a", "a", "b"], "id": pa.array([1, 2, 3], pa.int64())})
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=configuration)
    write_deltalake(tmp_path, data.slice(0, 1), mode="overwrite", predicate="id = 1")
    write = begin_write(tmp_path, mode="append")
    assert isinstance(write, DistributedWrite)
    with write:
        write.commit([write.task.write(data), write.task.write(data.slice(1))])
    for file in files(tmp_path):
        assert len(set(file.column("p").to_pylist())) == 1
    assert sorted(row["id"] for row in rows(tmp_path)) == [1, 1, 2, 2, 2, 3, 3, 3]


def test_the_feature_is_added_and_dropped_without_files(tmp_path: Path) -> None:
    """After the feature is added, new files have the columns; existing files are not changed."""
    data = pa.table({"p": ["a"], "id": pa.array([1], pa.int64())})
    write_deltalake(tmp_path, data, partition_by=["p"])
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties(BY_FEATURE)
    assert FEATURE in (table.protocol().writer_features or [])
    write_deltalake(tmp_path, data, mode="append")
    table.update_incremental()
    version = table.alter.drop_feature(FEATURE)
    assert not {"add", "remove"} & {name for line in actions(tmp_path, version) for name in line}
    assert not DeltaTable(tmp_path).metadata().configuration
    assert FEATURE not in (DeltaTable(tmp_path).protocol().writer_features or [])
    write_deltalake(tmp_path, data, mode="append")
    assert sorted("p" in file.column_names for file in files(tmp_path)) == [False, False, True]
    assert [row["p"] for row in rows(tmp_path)] == ["a"] * 3
    table.update_incremental()
    table.alter.add_feature(FEATURE)
    write_deltalake(tmp_path, data, mode="append")
    assert sum("p" in file.column_names for file in files(tmp_path)) == 2


def test_files_of_before_the_feature_are_a_conflict_and_of_before_the_property_are_not(
    tmp_path: Path,
) -> None:
    """The feature requires that new files have the columns, so files that were written before it was added are a
    conflict. The property is only a request: "it is also correct … to ignore this property".
    """
    data = pa.table({"p": ["a"], "id": pa.array([1], pa.int64())})
    for configuration, conflicts in ((BY_FEATURE, True), (BY_PROPERTY, False)):
        path = tmp_path / str(conflicts)
        write_deltalake(path, data, partition_by=["p"])
        write = begin_write(path, mode="append")
        assert isinstance(write, DistributedWrite)
        with write:
            fragment = write.task.write(data)
            DeltaTable(path).alter.set_table_properties(configuration)
            if conflicts:
                with pytest.raises(CommitConflictError):
                    write.commit([fragment])
            else:
                write.commit([fragment])
        assert len(rows(path)) == (1 if conflicts else 2)


@pytest.mark.parametrize("value", ["\0", "a\0b", "\0/\x01%00"])
def test_nul_in_a_partition_value(tmp_path: Path, value: str) -> None:
    rows = pa.table({"p": [value, "x"], "v": [1, 2]})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    write_deltalake(tmp_path, rows, mode="append")
    table = DeltaTable(tmp_path)
    [name] = {file.parent.name for file in tmp_path.glob("p=*%00*/*.parquet")}
    assert "\0" not in name
    table.delete(f"p = '{value}' AND v = 1")
    assert table.to_pyarrow_table().to_pylist() == [{"p": "x", "v": 2}] * 2
    table.update({"p": "'y\0'"})
    assert sorted(table.to_pyarrow_table()["p"].to_pylist()) == ["y\0"] * 2
    table.optimize.compact()
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["p"].to_pylist()) == ["y\0"] * 2
