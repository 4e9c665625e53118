"""If a table property asks for it, small files are compacted after a write. Protocol: "Add File and Remove File"."""

from __future__ import annotations

import logging
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, DistributedWrite, InvalidArgumentError, begin_write, write_deltalake

AUTO = {"delta.autoOptimize.autoCompact": "true", "delta.enableDeletionVectors": "true"}


def rows(first: int, count: int = 1) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


def ids(path: Path) -> list[int]:
    """Returns the ids as `deltalake` reads them."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    found: list[int] = sorted(pa.table(query.execute("select id from t"))["id"].to_pylist())
    return found


def test_the_fiftieth_append_is_followed_by_a_compaction(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(49):
        write_deltalake(path, rows(number), mode="append", configuration=AUTO if number == 0 else None)
    table = DeltaTable(path)
    assert (table.version(), len(table.file_uris())) == (48, 49)
    # An append through an open table does not list the log first, but its file counts as well.
    assert write_deltalake(table, rows(49), mode="append") == 49
    table.update_incremental()
    assert (table.version(), len(table.file_uris())) == (50, 1)
    optimized, written = table.history(2)
    assert (optimized["operation"], written["operation"]) == ("OPTIMIZE", "WRITE")
    assert str(optimized["operationParameters"]["auto"]).lower() == "true"
    assert ids(path) == list(range(50))
    write_deltalake(table, rows(50), mode="append")
    table.update_incremental()
    assert len(table.file_uris()) == 2


def test_files_of_several_processes_are_compacted_too(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, rows(0), configuration=AUTO)
    write = begin_write(path, rows(0).schema, mode="append")
    assert isinstance(write, DistributedWrite)
    write.commit([write.task.write(rows(number)) for number in range(1, 50)])
    assert len(DeltaTable(path).file_uris()) == 1
    assert ids(path) == list(range(50))


def test_statements_start_it_only_if_they_write_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(50):
        write_deltalake(path, rows(10 * number, 10), mode="append")
    table = DeltaTable(path)
    table.alter.set_table_properties(AUTO)
    table.delete("id = 5")
    assert len(table.file_uris()) == 50
    table.update({"id": "id + 1000"}, predicate="id = 7")
    assert len(DeltaTable(path).file_uris()) == 1
    assert sorted(pa.table(DeltaTable(path).to_arrow())["id"].to_pylist()) == [
        *(number for number in range(500) if number not in (5, 7)),
        1007,
    ]


def test_a_write_succeeds_if_the_compaction_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t"
    for number in range(49):
        write_deltalake(path, rows(number), mode="append", configuration=AUTO if number == 0 else None)
    # One of the old files is damaged.
    damaged = Path(deltalake.DeltaTable(str(path)).file_uris()[0].removeprefix("file://"))
    good = damaged.read_bytes()
    damaged.write_bytes(b"PAR1" + b"\0" * (len(good) - 8) + b"PAR1")
    with caplog.at_level(logging.WARNING):
        assert write_deltalake(path, rows(49), mode="append") == 49
    assert DeltaTable(path).version() == 49
    assert "the compaction of small files after it failed" in caplog.text
    # The next write tries again.
    damaged.write_bytes(good)
    write_deltalake(path, rows(50), mode="append")
    assert len(DeltaTable(path).file_uris()) == 1
    assert ids(path) == list(range(51))


@pytest.mark.parametrize("value", ["sometimes", "1"])
def test_values_without_a_meaning_are_refused_by_name(tmp_path: Path, value: str) -> None:
    for name in ("delta.autoOptimize", "delta.autoOptimize.autoCompact", "delta.autoOptimize.optimizeWrite"):
        with pytest.raises(InvalidArgumentError, match=name):
            write_deltalake(tmp_path / "t", rows(0), configuration={name: value})
