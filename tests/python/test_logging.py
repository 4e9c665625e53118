"""The core's warnings reach Python's `logging` from any thread, no matter which thread holds the interpreter lock."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, _internal, write_deltalake

VERSIONS = 13
"""The number of versions that the table has. It has a checkpoint at version 10."""


class Records(logging.Handler):
    """A logging handler that keeps the records, each with the thread that delivered it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def wait_for(self, number: int) -> list[logging.LogRecord]:
        """Waits until there are `number` records. Records of other threads arrive with a delay."""
        until = time.monotonic() + 30
        while len(self.records) < number and time.monotonic() < until:
            time.sleep(0.01)
        return self.records


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    logger = logging.getLogger("deltalog")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for version in range(VERSIONS):
        write_deltalake(path, pa.table({"id": [version]}), mode="append")
    return path


def spoil_hint(table: Path) -> None:
    (table / "_delta_log" / "_last_checkpoint").write_text("{")


def spoil_paths(table: Path) -> None:
    """Damages the paths in the checkpoint, but not its protocol and metadata, so the damage is noticed only when the
    first row is read.
    """
    file = table / "_delta_log" / f"{10:020}.checkpoint.parquet"
    metadata = pq.ParquetFile(file).metadata
    data = bytearray(file.read_bytes())
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        columns = map(group.column, range(group.num_columns))
        chunk = next(column for column in columns if column.path_in_schema == "add.path")
        start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
        data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(data)


def test_a_warning_is_a_record(table: Path, records: Records) -> None:
    spoil_hint(table)
    DeltaTable(table)
    (record,) = records.records
    assert (record.name, record.levelno, record.levelname) == (
        "deltalog.log.last_checkpoint",
        logging.WARNING,
        "WARNING",
    )
    assert record.threadName == "MainThread"
    message = record.getMessage()
    for part in (
        "an invalid hint is ignored",
        f'table="{table.as_uri()}"',
        'file="_delta_log/_last_checkpoint"',
        "error=",
    ):
        assert part in message, message


def test_the_warning_about_a_damaged_checkpoint_names_its_version(table: Path, records: Records) -> None:
    spoil_paths(table)
    assert len(DeltaTable(table).file_uris()) == VERSIONS
    (record,) = records.records
    assert record.name == "deltalog.log.replay.checkpoint"
    message = record.getMessage()
    for part in (
        "reading the commits alone instead",
        table.as_uri(),
        "version=10",
        f"{10:020}.checkpoint.parquet",
    ):
        assert part in message, message


def test_python_levels_apply_at_any_time(table: Path, records: Records) -> None:
    spoil_hint(table)
    logger = logging.getLogger("deltalog.log")
    try:
        logger.setLevel(logging.ERROR)
        DeltaTable(table)
        assert records.records == []
        logger.setLevel(logging.NOTSET)
        # Opening a table that the process has already read does not read the hint.
        _internal.forget_snapshots()
        DeltaTable(table)
        assert len(records.records) == 1
    finally:
        logger.setLevel(logging.NOTSET)


def test_each_thread_logs_its_own_warnings(table: Path, records: Records) -> None:
    spoil_hint(table)
    barrier = threading.Barrier(8)

    def open_it(_: int) -> str:
        barrier.wait(60)
        DeltaTable(table)
        return threading.current_thread().name

    with ThreadPoolExecutor(8, thread_name_prefix="reader") as pool:
        names = set(pool.map(open_it, range(8), timeout=120))
    # Each thread has its own table, because a thread that finds a table already open does not read the hint.
    assert 1 <= len(records.records) <= 8
    # A call also delivers records that other threads have just queued.
    assert {record.threadName for record in records.records} <= names


def holding_the_interpreter(stream: Any) -> int:
    return pl.DataFrame(stream).height


def without_the_interpreter(stream: Any) -> int:
    return int(pa.table(stream).num_rows)


@pytest.mark.parametrize("take", [holding_the_interpreter, without_the_interpreter])
def test_a_warning_from_within_a_stream(table: Path, records: Records, take: Callable[[Any], int]) -> None:
    """The consumer of a stream waits for the core, and may hold the interpreter lock, so the core must not wait for
    the lock to log a warning.
    """
    spoil_paths(table)
    stream = DeltaTable(table).files()
    assert records.records == []
    assert take(stream) == VERSIONS
    (record,) = records.wait_for(1)
    assert "a checkpoint cannot be read" in record.getMessage()
    # Another thread delivers the record: a thread for which the consumer waits must not wait for the interpreter lock.
    assert record.threadName != "MainThread"


def test_streams_on_many_threads(table: Path, records: Records) -> None:
    spoil_paths(table)
    streams = [DeltaTable(table, version=VERSIONS - 1).files() for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        takers = [holding_the_interpreter, without_the_interpreter] * 8
        assert (
            list(pool.map(lambda take, stream: take(stream), takers, streams, timeout=120)) == [VERSIONS] * 16
        )
    assert len(records.wait_for(16)) == 16


def test_a_filter_that_fails_changes_nothing(
    table: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)

    def fail(_: logging.LogRecord) -> bool:
        raise ValueError("a bad filter")

    records.addFilter(fail)
    spoil_hint(table)
    assert DeltaTable(table).version() == VERSIONS - 1
    assert [str(one.exc_value) for one in raised] == ["a bad filter"]


def test_ctrl_c_in_a_handler_stops_the_call(table: Path, records: Records) -> None:
    def stop(_: logging.LogRecord) -> bool:
        raise KeyboardInterrupt

    records.addFilter(stop)
    spoil_hint(table)
    with pytest.raises(KeyboardInterrupt):
        DeltaTable(table)
    records.removeFilter(stop)
    assert DeltaTable(table).version() == VERSIONS - 1


def test_a_handler_that_stops_does_not_hide_a_commit(tmp_path: Path, records: Records) -> None:
    """If a logging handler asks the program to stop while a commit is made, by an exception such as SystemExit, the
    call that commits succeeds, and the next call raises the exception.
    """

    def stop(_: logging.LogRecord) -> bool:
        raise SystemExit

    path = tmp_path / "t"
    for version in range(10):
        write_deltalake(path, pa.table({"id": [version]}), mode="append")
    # The name of the checkpoint that is due is taken, so it cannot be written, and a warning is logged.
    (path / "_delta_log" / f"{10:020}.checkpoint.parquet" / "not empty").mkdir(parents=True)
    records.addFilter(stop)
    assert write_deltalake(path, pa.table({"id": [10]}), mode="append") == 10
    records.removeFilter(stop)
    with pytest.raises(SystemExit):
        DeltaTable(path)
    assert DeltaTable(path).version() == 10


def test_a_handler_may_use_the_table(table: Path, records: Records) -> None:
    seen: list[int] = []
    quiet = logging.getLogger("deltalog.log.last_checkpoint")

    def ask(_: logging.LogRecord) -> bool:
        quiet.setLevel(logging.CRITICAL)
        seen.append(DeltaTable(table).version())
        quiet.setLevel(logging.NOTSET)
        return True

    records.addFilter(ask)
    spoil_hint(table)
    DeltaTable(table)
    assert (seen, len(records.records)) == ([VERSIONS - 1], 1)


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_nothing_is_lost_at_the_end_of_the_process(table: Path) -> None:
    """Warnings are not lost when the process ends. Without any configuration, Python prints them to stderr."""
    spoil_paths(table)
    ran = run(
        "import sys, deltalog, polars\npolars.DataFrame(deltalog.DeltaTable(sys.argv[1]).files())", table
    )
    assert ran.returncode == 0
    assert ran.stderr.count("a checkpoint cannot be read") == 1, ran.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_logs(table: Path) -> None:
    spoil_paths(table)
    script = """
import os, sys, deltalog
def read():
    assert len(deltalog.DeltaTable(sys.argv[1]).file_uris()) == 13
read()
child = os.fork()
if child == 0:
    status = 1
    try:
        read()
        status = 0
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    ran = run(script, table)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("a checkpoint cannot be read") == 2, ran.stderr


def test_logging_is_imported_only_when_something_is_logged(tmp_path: Path) -> None:
    script = """
import sys
before = "logging" in sys.modules
import deltalog
deltalog.DeltaTable.is_deltatable(sys.argv[1])
print(before, "logging" in sys.modules)
"""
    ran = run(script, tmp_path)
    assert ran.stdout.split() == ["False", "False"], ran.stdout + ran.stderr
