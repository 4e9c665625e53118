"""Creates a table with two partitions, and makes commits while a statement reads it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from deltalog import DeltaTable, write_deltalake

Rows = list[tuple[str, int]]
Change = Callable[[str], object]


def created(path: str, level: str = "WriteSerializable") -> str:
    """Creates a table with the rows (p, 1) and (q, 2). Returns its name in SQL."""
    write_deltalake(
        path,
        data([("p", 1), ("q", 2)]),
        partition_by="part",
        configuration={"delta.isolationLevel": level},
    )
    return f"deltalog.`{path}`"


def data(rows: Rows) -> pa.Table:
    parts, values = zip(*rows, strict=True)
    return pa.table({"part": pa.array(parts, pa.string()), "value": pa.array(values, pa.int64())})


def rows(path: str) -> Rows:
    return sorted((row["part"], row["value"]) for row in pa.table(DeltaTable(path).to_arrow()).to_pylist())


def last(path: str) -> dict[str, Any]:
    """Returns the newest entry of the history."""
    return DeltaTable(path).history(1)[0]


def append_q(path: str) -> None:
    write_deltalake(path, data([("q", 9)]), mode="append")


def append_r(path: str) -> None:
    write_deltalake(path, data([("r", 9)]), mode="append")


def insert_q(path: str) -> None:
    """Inserts a row into partition q with a statement that also reads the table, so that it is not a blind append."""
    merge = DeltaTable(path).merge(data([("q", 9)]), "t.value = s.value", source_alias="s", target_alias="t")
    merge.when_not_matched_insert_all().execute()


def update_q(path: str) -> None:
    DeltaTable(path).update({"value": "value + 10"}, predicate="part = 'q'")


def delete_q(path: str) -> None:
    DeltaTable(path).delete("part = 'q'")


@contextmanager
def overtaken(spark: SparkSession, path: str, change: Change) -> Iterator[None]:
    """Registers the SQL function `hook`, which returns its argument. Its first call, in a Python worker, waits until
    this process has made the change. Fails if `hook` is never called.
    """
    meeting = f"{path}.{uuid.uuid4()}"
    started, done = Path(f"{meeting}.started"), Path(f"{meeting}.done")

    def hook(value: int) -> int:
        if not done.exists():
            started.touch()
        while not done.exists():
            time.sleep(0.01)
        return value

    spark.udf.register("hook", sf.udf(hook, "bigint"))
    with changed_at(meeting, lambda: change(path)):
        yield


@contextmanager
def changed_at(meeting: str, change: Callable[[], object]) -> Iterator[None]:
    """Waits for the file `MEETING.started`, makes the change, and creates the file `MEETING.done`. Fails if the first
    file does not appear before the block ends.
    """
    started, done = Path(f"{meeting}.started"), Path(f"{meeting}.done")
    is_over = threading.Event()

    def overtake() -> None:
        while not started.exists() and not is_over.is_set():
            time.sleep(0.01)
        try:
            if started.exists():
                change()
        finally:
            done.touch()

    with ThreadPoolExecutor(1) as pool:
        changed = pool.submit(overtake)
        try:
            yield
        finally:
            is_over.set()
        changed.result()
    assert started.exists()
