"""Writes whose rows are read from the same table."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import CommitConflictError, DeltaTable, write_deltalake

LEVELS = ("WriteSerializable", "Serializable")


def data(*rows: tuple[int, int]) -> pa.Table:
    ids, parts = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(parts, pa.int32())})


def created(path: Path, level: str = "WriteSerializable") -> None:
    configuration = {"delta.isolationLevel": level}
    write_deltalake(path, data((1, 1), (2, 2)), partition_by="p", configuration=configuration)


def rows(path: Path) -> list[tuple[int, int]]:
    return sorted((row["id"], row["p"]) for row in pa.table(DeltaTable(path).to_arrow()).to_pylist())


def last(path: Path) -> dict[str, Any]:
    return DeltaTable(path).history(1)[0]


@pytest.mark.parametrize("by_handle", [False, True])
def test_an_append_of_own_rows_depends_on_them(tmp_path: Path, by_handle: bool) -> None:
    created(tmp_path)
    table = DeltaTable(tmp_path)
    target = table if by_handle else tmp_path
    assert write_deltalake(target, table.to_arrow(predicate="p = 1"), mode="append") == 1
    assert (last(tmp_path)["isBlindAppend"], last(tmp_path)["readVersion"]) == (False, 0)
    stream = DeltaTable(tmp_path).to_arrow(predicate="p = 2")
    DeltaTable(tmp_path).update({"id": "id + 10"}, predicate="p = 2")
    files = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(CommitConflictError) as caught:
        write_deltalake(target, stream, mode="append")
    assert caught.value.reason in ("concurrent_append", "concurrent_delete_read")
    assert set(tmp_path.rglob("*.parquet")) == files
    assert rows(tmp_path) == [(1, 1), (1, 1), (12, 2)]


@pytest.mark.parametrize("level", LEVELS)
def test_blind_appends_are_conflicts_as_the_isolation_level_has_it(tmp_path: Path, level: str) -> None:
    created(tmp_path, level)
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, data((9, 2)), mode="append")
    assert last(tmp_path)["isBlindAppend"] is True
    write_deltalake(tmp_path, table.to_arrow(predicate="p = 1"), mode="append")
    if level == "Serializable":
        with pytest.raises(CommitConflictError, match="p = 2"):
            write_deltalake(tmp_path, table.to_arrow(predicate="p = 2"), mode="append")
    else:
        write_deltalake(tmp_path, table.to_arrow(predicate="p = 2"), mode="append")


def test_a_whole_table_appended_to_itself_depends_on_all_rows(tmp_path: Path) -> None:
    created(tmp_path)
    table = DeltaTable(tmp_path)
    stream = table.to_arrow()
    DeltaTable(tmp_path).delete("p = 1")
    with pytest.raises(CommitConflictError) as caught:
        write_deltalake(tmp_path, stream, mode="append")
    assert (caught.value.reason, caught.value.version) == ("concurrent_delete_read", 1)
    write_deltalake(tmp_path, DeltaTable(tmp_path), mode="append")
    assert rows(tmp_path) == [(2, 2), (2, 2)]


def test_an_overwrite_of_some_rows_depends_on_the_rows_that_it_read(tmp_path: Path) -> None:
    """Two writers each overwrite one partition with the rows of the other partition. If one ran after the other, both
    partitions would be equal at the end, so one of them must conflict.
    """
    created(tmp_path)
    first = DeltaTable(tmp_path).to_arrow(columns=["id"], predicate="p = 2")
    moved = pa.table(DeltaTable(tmp_path).to_arrow(predicate="p = 1")).set_column(
        1, "p", pa.array([2], pa.int32())
    )
    write_deltalake(tmp_path, moved, mode="overwrite", predicate="p = 2")
    assert rows(tmp_path) == [(1, 1), (1, 2)]
    with pytest.raises(CommitConflictError):
        write_deltalake(tmp_path, first, mode="overwrite", predicate="p IS NULL")
    own = DeltaTable(tmp_path).to_arrow(predicate="p = 2")
    write_deltalake(tmp_path, data((5, 1)), mode="append")
    write_deltalake(tmp_path, own, mode="overwrite", partition_overwrite="dynamic")
    assert rows(tmp_path) == [(1, 1), (1, 2), (5, 1)]


def test_an_overwrite_by_own_rows_replaces_the_version_that_has_them(tmp_path: Path) -> None:
    created(tmp_path)
    stream = DeltaTable(tmp_path).to_arrow(predicate="id > 1")
    write_deltalake(tmp_path, data((9, 9)), mode="append")
    with pytest.raises(CommitConflictError) as caught:
        write_deltalake(tmp_path, stream, mode="overwrite")
    assert caught.value.version == 1
    write_deltalake(tmp_path, DeltaTable(tmp_path).to_arrow(predicate="id > 1"), mode="overwrite")
    assert rows(tmp_path) == [(2, 2), (9, 9)]


def test_rows_of_an_explicit_version_may_be_old(tmp_path: Path) -> None:
    created(tmp_path, "Serializable")
    DeltaTable(tmp_path).delete("p = 1")
    write_deltalake(tmp_path, DeltaTable(tmp_path, version=0).to_arrow(predicate="p = 1"), mode="append")
    assert rows(tmp_path) == [(1, 1), (2, 2)]
    assert last(tmp_path)["isBlindAppend"] is True
    DeltaTable(tmp_path).delete("p = 2")
    write_deltalake(tmp_path, DeltaTable(tmp_path, version=0).to_arrow(), mode="overwrite")
    assert rows(tmp_path) == [(1, 1), (2, 2)]


def test_rows_of_another_table_do_not_count_as_own_rows(tmp_path: Path) -> None:
    created(tmp_path / "one", "Serializable")
    created(tmp_path / "other")
    rows_of_other = DeltaTable(tmp_path / "other").to_arrow()
    DeltaTable(tmp_path / "one").delete("p = 1")
    write_deltalake(tmp_path / "one", rows_of_other, mode="append")
    assert last(tmp_path / "one")["isBlindAppend"] is True
