"""Dynamic partition overwrites, which replace only partitions that have new rows."""

from pathlib import Path
from typing import Any, Literal

import deltalake
import pyarrow as pa
import pytest

import deltalog


def table(**columns: list[Any]) -> pa.Table:
    return pa.table({"id": pa.array(columns["id"], pa.int64()), "p": pa.array(columns["p"], pa.int32())})


def write(path: Path, data: pa.Table, replaced: Literal["static", "dynamic"] = "dynamic") -> None:
    deltalog.write_deltalake(path, data, mode="overwrite", partition_by="p", partition_overwrite=replaced)


def rows(path: Path) -> list[tuple[int, int | None]]:
    found = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted(((row["id"], row["p"]) for row in found), key=str)


def test_only_partitions_with_new_rows_are_replaced(tmp_path: Path) -> None:
    write(tmp_path, table(id=[1, 2, 3], p=[1, 2, None]))
    write(tmp_path, table(id=[4], p=[1]))
    assert rows(tmp_path) == [(2, 2), (3, None), (4, 1)]
    write(tmp_path, table(id=[5], p=[None]))
    assert rows(tmp_path) == [(2, 2), (4, 1), (5, None)]
    write(tmp_path, table(id=[], p=[]))
    assert rows(tmp_path) == [(2, 2), (4, 1), (5, None)]
    write(tmp_path, table(id=[], p=[]), "static")
    assert rows(tmp_path) == []


def test_values_are_compared_by_type(tmp_path: Path) -> None:
    """Partition values are compared as values of their type, because another writer may have spelled a number
    differently.
    """
    write(tmp_path, table(id=[1, 2], p=[1, 2]))
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"p":"1"', '"p":"01"'))
    write(tmp_path, table(id=[3], p=[1]))
    assert rows(tmp_path) == [(2, 2), (3, 1)]


def test_commits_in_other_partitions_do_not_conflict(tmp_path: Path) -> None:
    write(tmp_path, table(id=[1, 2], p=[1, 2]))
    base = deltalog.DeltaTable(tmp_path)
    deltalog.write_deltalake(tmp_path, table(id=[3], p=[2]), mode="append")
    deltalog.write_deltalake(base, table(id=[4], p=[1]), mode="overwrite", partition_overwrite="dynamic")
    assert rows(tmp_path) == [(2, 2), (3, 2), (4, 1)]
    files = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(deltalog.CommitConflictError, match="partition") as caught:
        deltalog.write_deltalake(base, table(id=[5], p=[2]), mode="overwrite", partition_overwrite="dynamic")
    assert (caught.value.reason, caught.value.version) == ("concurrent_append", 1)
    assert rows(tmp_path) == [(2, 2), (3, 2), (4, 1)]
    assert set(tmp_path.rglob("*.parquet")) == files


def test_a_table_without_partitions_is_replaced(tmp_path: Path) -> None:
    data = pa.table({"id": [1]})
    for _ in range(2):
        deltalog.write_deltalake(tmp_path, data, mode="overwrite", partition_overwrite="dynamic")
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table() == data
    with pytest.raises(deltalog.InvalidArgumentError, match="'static' or 'dynamic'"):
        deltalog.write_deltalake(tmp_path, data, mode="overwrite", partition_overwrite="some")  # type: ignore[call-overload]


def test_a_wider_partition_column_holds_old_and_new_values(tmp_path: Path) -> None:
    """Table feature `typeWidening`: partition values that were written with the old type equal the same values of the
    new type.
    """
    configuration = {"delta.enableTypeWidening": "true"}
    deltalog.write_deltalake(
        tmp_path, table(id=[1, 2], p=[1, 2]), partition_by="p", configuration=configuration
    )
    wider = pa.table({"id": [3, 4], "p": pa.array([2, 2**40], pa.int64())})
    deltalog.write_deltalake(
        tmp_path, wider, mode="overwrite", partition_overwrite="dynamic", schema_mode="merge"
    )
    found = deltalog.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["p"]) for row in found] == [(1, 1), (3, 2), (4, 2**40)]
