"""Ctrl-C during calls on the local file system. An interrupted statement takes effect once or not at all, and its
exception says which.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import CommittedInterrupt, DeltaTable, write_deltalake
from tests.interrupting import PATIENCE, after, pressing
from tests.python.place import data_files, tree


def made(path: Path, files: int) -> DeltaTable:
    """Returns a table of `files` files, each with the rows 0, 1, 2."""
    rows = pa.table({"p": [number for number in range(files) for _ in range(3)], "n": [0, 1, 2] * files})
    write_deltalake(path, rows, partition_by=["p"])
    return DeltaTable(path)


def test_an_interrupted_update_counts_once_or_not_at_all(tmp_path: Path) -> None:
    """The signal may arrive at any time. If it arrives early, the call stops and leaves no files behind."""
    path = tmp_path / "t"
    made(path, 12)
    expected, stopped = 0, 0
    for tries, delay in enumerate([0.0, 0.03, 0.1] + [0.02] * 20):
        if tries >= 3 and stopped:
            break
        table = DeltaTable(path)
        files = len(data_files(path))
        with contextlib.suppress(KeyboardInterrupt), pressing(after(delay)):
            try:
                table.update({"n": "n + 1"})
                expected += 1
            except CommittedInterrupt as interrupt:
                expected = interrupt.version or -1
            except KeyboardInterrupt:
                stopped += 1
                assert len(data_files(path)) == files
        rows = pa.table(DeltaTable(path).to_arrow())
        assert DeltaTable(path).version() == expected
        assert sorted(rows["n"].to_pylist()) == sorted([expected, expected + 1, expected + 2] * 12)
    assert stopped >= 1


def wait() -> None:
    """Waits in short steps, because a signal that arrives just before a wait is handled only when the wait ends."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.01)


def test_another_thread_is_not_interrupted(tmp_path: Path) -> None:
    """Ctrl-C does not interrupt calls on other threads, because Python runs signal handlers on the main thread."""
    table = made(tmp_path / "t", 30)
    outcomes: list[object] = []
    thread = threading.Thread(target=lambda: outcomes.append(table.update({"n": "n + 1"})))
    thread.start()
    with pytest.raises(KeyboardInterrupt), pressing(after(0.0)):
        wait()
    thread.join()
    assert len(outcomes) == 1
    assert DeltaTable(tmp_path / "t").version() == 1


def test_a_source_that_reads_tables_is_interrupted(tmp_path: Path) -> None:
    """A write whose source reads a table is interrupted. The inner call notices the signal, and the outer call raises
    the exception.
    """
    inner = made(tmp_path / "inner", 30)
    before = tree(tmp_path)
    schema = pa.schema([("p", pa.int64()), ("n", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            yield from pa.table(inner.to_arrow()).cast(schema).to_batches()

    with pytest.raises(KeyboardInterrupt), pressing(after(0.1)):
        write_deltalake(tmp_path / "t", pa.RecordBatchReader.from_batches(schema, batches()))
    assert tree(tmp_path) == before
