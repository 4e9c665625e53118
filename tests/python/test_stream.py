"""`DeltaTable.stream`: the rows of a table as a sequence of batches, in which each row occurs once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, StreamBacklog, StreamBatch, TableStream, write_deltalake

Change = Callable[[DeltaTable], object]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "more": pa.array(map(str, ids), pa.string())})


def append(path: Path, *ids: int) -> None:
    write_deltalake(path, rows(*ids), mode="append")


def ids(batch: Any) -> list[int]:
    return sorted(pa.table(batch)["id"].to_pylist())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Creates a table with two commits of one row each."""
    append(tmp_path / "t", 1)
    append(tmp_path / "t", 2)
    return tmp_path / "t"


def test_the_rows_of_the_table_come_first_and_then_the_rows_of_new_commits(path: Path) -> None:
    first = list(DeltaTable(path).stream())
    assert [ids(batch) for batch in first] == [[1, 2]]
    append(path, 3)
    second = list(DeltaTable(path).stream(first[-1].offset))
    assert [ids(batch) for batch in second] == [[3]]
    assert list(DeltaTable(path).stream(second[-1].offset)) == []


def test_a_new_stream_continues_at_the_offset_of_a_batch(path: Path) -> None:
    append(path, 3)
    found, offset = [], None
    while batch := next(DeltaTable(path).stream(offset, max_files=1), None):
        found += ids(batch)
        offset = batch.offset
    assert sorted(found) == [1, 2, 3]
    assert [ids(batch) for batch in DeltaTable(path).stream(max_bytes=1)] != [[1, 2, 3]]


def test_offsets_have_the_format_of_the_jvm_connector(path: Path) -> None:
    table = DeltaTable(path)
    (batch,) = table.stream()
    assert json.loads(batch.offset) == {
        "sourceVersion": 1,
        "reservoirId": table.metadata().id,
        "reservoirVersion": 2,
        "index": -1,
        "isStartingVersion": False,
    }


def test_a_stream_starts_at_its_start_argument(path: Path) -> None:
    table = DeltaTable(path)
    time_of_1 = datetime.fromtimestamp(table.history()[0]["timestamp"] / 1000, timezone.utc)

    def found(start: Any) -> list[int]:
        return [value for batch in table.stream(start) for value in ids(batch)]

    assert found(1) == [2]
    assert found(0) == [1, 2]
    assert found(time_of_1) == found(time_of_1.isoformat()) == [2]
    assert found("latest") == []
    for future in (7, "2100-01-01T00:00:00Z"):
        with pytest.raises(deltalog.VersionNotFoundError, match="start"):
            found(future)
    for wrong in ("tomorrow", -1, 1.5, "{}"):
        with pytest.raises(deltalog.InvalidArgumentError):
            found(wrong)


def test_a_batch_can_be_read_twice_and_has_the_requested_columns(path: Path) -> None:
    (batch,) = DeltaTable(path).stream(columns=["more"])
    assert isinstance(batch, StreamBatch)
    for _ in range(2):
        assert pa.table(batch).column_names == ["more"]
    assert pa.table(batch.to_arrow()).num_rows == 2


def test_polling_does_not_wait(path: Path) -> None:
    stream = DeltaTable(path).stream(follow=True, poll_interval=0)
    first = stream.poll()
    assert first is not None
    assert stream.offset == first.offset
    assert stream.poll() is None
    append(path, 3)
    second = stream.poll()
    assert second is not None
    assert ids(second) == [3]


def test_a_stream_that_follows_waits_for_commits(path: Path) -> None:
    with DeltaTable(path).stream(follow=True, poll_interval=0.01) as stream:
        assert ids(next(stream)) == [1, 2]
        writer = threading.Timer(0.2, append, (path, 3))
        writer.start()
        assert ids(next(stream)) == [3]
        writer.join()


def test_poll_returns_none_after_its_timeout(path: Path) -> None:
    stream = DeltaTable(path).stream("latest", follow=True)
    began = time.monotonic()
    assert stream.poll(timeout=0.3) is None
    # The test and the stream use different clocks, which may differ a little.
    assert time.monotonic() - began >= 0.29


def test_closing_a_stream_ends_the_wait_of_another_thread(path: Path) -> None:
    stream = DeltaTable(path).stream("latest", follow=True)
    found: list[StreamBatch] = []
    reader = threading.Thread(target=lambda: found.extend(stream))
    reader.start()
    stream.close()
    reader.join(30)
    assert not reader.is_alive()
    assert found == []
    assert next(stream, None) is None


def test_other_threads_run_while_a_stream_waits(path: Path) -> None:
    stream = DeltaTable(path).stream("latest", follow=True)
    reader = threading.Thread(target=lambda: next(stream, None))
    reader.start()
    assert sum(range(100_000)) == 4999950000
    stream.close()
    reader.join(30)
    assert not reader.is_alive()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_wait(path: Path) -> None:
    program = f"""
import os, signal, threading
from deltalog import DeltaTable
# Shells start background processes without this handler.
signal.signal(signal.SIGINT, signal.default_int_handler)
stream = DeltaTable({str(path)!r}).stream("latest", follow=True)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    next(stream)
except KeyboardInterrupt:
    print("interrupted")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "interrupted\n", ran.stderr


def test_commits_that_only_move_rows_add_no_rows(path: Path) -> None:
    stream = DeltaTable(path).stream(follow=True, poll_interval=0)
    assert ids(next(stream)) == [1, 2]
    DeltaTable(path).optimize.compact()
    moved = stream.poll()
    assert moved is not None
    assert ids(moved) == []


CHANGES: dict[str, tuple[Change, list[int]]] = {
    "ignore": (lambda table: table.update({"id": "id + 10"}, predicate="id = 1"), [11]),
    "skip": (lambda table: table.update({"id": "id + 10"}, predicate="id = 1"), []),
    "ignore_deletes": (lambda table: table.delete("id = 1"), []),
}


@pytest.mark.parametrize("handling", CHANGES)
def test_commits_that_change_rows_are_refused_unless_change_commits_is_set(path: Path, handling: Any) -> None:
    change, expected = CHANGES[handling]
    (batch,) = DeltaTable(path).stream()
    change(DeltaTable(path))
    with pytest.raises(deltalog.UnsupportedFeatureError) as refused:
        list(DeltaTable(path).stream(batch.offset))
    assert refused.value.version == 2
    assert refused.value.table is not None
    (after,) = DeltaTable(path).stream(batch.offset, change_commits=handling)
    assert ids(after) == expected


def test_excluded_files_are_left_out(path: Path) -> None:
    (batch,) = DeltaTable(path).stream(exclude=r"\.parquet$")
    assert ids(batch) == []
    with pytest.raises(deltalog.InvalidArgumentError, match="regular expression"):
        DeltaTable(path).stream(exclude="(")


def test_a_new_column_ends_a_stream_until_it_is_opened_again(path: Path) -> None:
    table = DeltaTable(path)
    stream = table.stream(follow=True, poll_interval=0)
    batch = next(stream)
    DeltaTable(path).alter.add_columns(deltalog.Field("new", "long"))
    append(path, 3)
    with pytest.raises(deltalog.SchemaMismatchError, match="open the stream again"):
        next(stream)
    (after,) = table.stream(batch.offset)
    assert pa.table(after).column_names == ["id", "more", "new"]
    assert ids(after) == [3]


def test_an_offset_of_another_table_is_refused(path: Path, tmp_path: Path) -> None:
    append(tmp_path / "other", 9)
    (batch,) = DeltaTable(tmp_path / "other").stream()
    with pytest.raises(deltalog.TableReplacedError):
        list(DeltaTable(path).stream(batch.offset))


def test_the_error_about_a_missing_file_names_the_file(path: Path) -> None:
    table = DeltaTable(path)
    (batch,) = table.stream()
    for uri in table.file_uris():
        Path(uri.removeprefix("file://")).unlink()
    with pytest.raises(deltalog.MissingFileError) as missing:
        batch.to_arrow()
    assert missing.value.path is not None


def test_a_stream_of_the_change_feed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, rows(1, 2), configuration={"delta.enableChangeDataFeed": "true"})
    stream = DeltaTable(path).stream(change_feed=True, follow=True, poll_interval=0)

    def changes() -> list[tuple[str, int, int]]:
        batch = stream.poll()
        assert batch is not None
        found = pa.table(batch)
        columns = ("_change_type", "id", "_commit_version")
        return sorted(zip(*(found[column].to_pylist() for column in columns), strict=True))

    assert changes() == [("insert", 1, 0), ("insert", 2, 0)]
    DeltaTable(path).update({"id": "id + 10"}, predicate="id = 1")
    assert changes() == [("update_postimage", 11, 1), ("update_preimage", 1, 1)]
    DeltaTable(path).delete("id = 2")
    assert changes() == [("delete", 2, 2)]
    assert stream.poll() is None


def test_the_change_feed_must_be_enabled(path: Path) -> None:
    with pytest.raises(deltalog.VersionNotFoundError, match="enableChangeDataFeed"):
        list(DeltaTable(path).stream(change_feed=True))


def test_the_backlog_counts_what_is_left(path: Path) -> None:
    stream = DeltaTable(path).stream(0, max_files=1)
    assert stream.backlog() is None
    next(stream)
    backlog = stream.backlog()
    assert backlog is not None
    assert backlog.versions == 1
    next(stream)
    assert stream.backlog() == StreamBacklog(versions=0, files=0, bytes=0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_files": 0},
        {"max_bytes": 0},
        {"change_commits": "explode"},
        {"poll_interval": -1},
        {"columns": "id"},
        {"follow": "yes"},
    ],
)
def test_errors_name_wrong_arguments(path: Path, arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(deltalog.InvalidArgumentError, match=name):
        DeltaTable(path).stream(**arguments)


def test_an_unknown_column_is_refused_when_rows_are_read(path: Path) -> None:
    (batch,) = DeltaTable(path).stream(columns=["nothing"])
    with pytest.raises(deltalog.InvalidArgumentError, match="nothing"):
        batch.to_arrow()


def test_a_stream_has_a_repr_with_its_offset(path: Path) -> None:
    stream = DeltaTable(path).stream()
    assert isinstance(stream, TableStream)
    assert "offset=None" in repr(stream)
    assert "reservoirVersion" in repr(next(stream))


def test_a_stream_with_schema_tracking_continues_after_a_column_was_renamed(
    path: Path, tmp_path: Path
) -> None:
    log = tmp_path / "schemas"
    table = DeltaTable(path)
    table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
    stream = table.stream(follow=True, poll_interval=0, schema_location=log)
    offset = next(stream).offset
    table.alter.rename_column("more", "text")
    append_renamed = pa.table({"id": pa.array([3], pa.int64()), "text": ["3"]})
    write_deltalake(path, append_renamed, mode="append")
    before = stream.poll()
    assert before is not None
    assert ids(before) == []
    with pytest.raises(deltalog.SchemaMismatchError, match="again"):
        stream.poll()
    with pytest.raises(deltalog.SchemaMismatchError, match="'more' to 'text'") as refused:
        DeltaTable(path).stream(before.offset, schema_location=log)
    allowed = {"rename": refused.value.version or 0}
    after = list(DeltaTable(path).stream(before.offset, schema_location=log, allow_schema_changes=allowed))
    assert [pa.table(batch).to_pylist() for batch in after if ids(batch)] == [[{"id": 3, "text": "3"}]]
    assert offset != before.offset
