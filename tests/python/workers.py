"""Functions that other processes run in the tests of distributed writes. They import little, so that the processes
start quickly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from deltalog import Fragment, WriteTask

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def part(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "p": [str(number % 2) for number in ids]}, SCHEMA)


def work(task: WriteTask, number: int) -> Fragment:
    """Writes two rows to a table that does not have a log yet."""
    log = Path(task.table_uri.removeprefix("file://")) / "_delta_log"
    assert not log.exists()
    return task.write(part(2 * number, 2 * number + 1))


def write(task: WriteTask, data: pa.Table) -> Fragment:
    return task.write(data)


def write_and_wait(task: WriteTask, started: Connection) -> None:
    """Begins to write files, and waits until the process is killed."""

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(4):
            yield pa.record_batch({"id": range(200_000), "p": [str(number)] * 200_000}, SCHEMA)
        started.send(True)
        time.sleep(600)

    task.write(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
