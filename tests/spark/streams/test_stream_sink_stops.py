"""Queries that are stopped while they write a batch.

No batch is half-written or committed after the stop, and the next run of the query writes the batch exactly once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from deltalog import DeltaTable
from deltalog.spark.streams import sink
from deltalog.spark.write import job
from deltalog.spark.write.interrupts import RunningWrite
from tests.spark.streams.batches import Batches, ended, files, write, written

PATIENCE = 60


class Stop:
    """Makes a function wait, so that a test can stop a query in the middle of a batch. When the function has done its
    work for the first time, it waits until the query's thread is interrupted.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.is_reached = threading.Event()

    def wait(self) -> None:
        self.is_reached.set()
        thread: Any = self._spark._jvm.java.lang.Thread  # type: ignore[union-attr]
        until = time.monotonic() + PATIENCE
        # The JVM has called this Python code, so calls back into the JVM run on the query's thread.
        while not thread.currentThread().isInterrupted():
            assert time.monotonic() < until
            time.sleep(0.01)

    def after(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **named: Any) -> Any:
            result = work(*arguments, **named)
            if not self.is_reached.is_set():
                self.wait()
            return result

        return done


# The functions after which a batch waits, each given as an object and a name.
# The first function returns before any row is computed, and the second returns after the job.
# The third function returns when the commit can no longer be stopped.
PLACES: dict[str, tuple[Any, str]] = {
    "checked": (sink, "begin_on"),
    "written": (job, "run_job"),
    "committing": (RunningWrite, "begin_commit"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_stopped_query_commits_a_whole_batch_or_nothing(
    spark: SparkSession, tmp_path: Path, path: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, checkpoint = Batches(tmp_path / "batches"), tmp_path / "checkpoint"
    batches.add(id=[0])
    ended(write(batches.read(spark), checkpoint).start(path))
    batches.add(id=[1, 2])
    stop = Stop(spark)
    owner, name = PLACES[place]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stop.after(getattr(owner, name)))
        query = write(batches.read(spark), checkpoint).start(path)
        assert stop.is_reached.wait(PATIENCE)
        query.stop()
    assert query.exception() is None
    expected = 1 if place == "committing" else 0
    assert (DeltaTable(path).version(), files(path)) == (expected, 1 + expected)
    ended(write(batches.read(spark), checkpoint).start(path))
    assert (DeltaTable(path).version(), written(path)) == (1, [(0,), (1,), (2,)])


def test_a_query_is_stopped_while_its_tasks_run(spark: SparkSession, tmp_path: Path, path: str) -> None:
    batches, checkpoint, marker = Batches(tmp_path / "batches"), tmp_path / "checkpoint", tmp_path / "marker"
    batches.add(id=list(range(10)))

    @sf.udf("bigint")
    def slow(value: int) -> int:
        marker.touch()
        time.sleep(PATIENCE if value == 7 else 0)
        return value

    query = write(batches.read(spark).select(slow("id").alias("id")), checkpoint).start(path)
    until = time.monotonic() + PATIENCE
    while not marker.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    query.stop()
    assert query.exception() is None
    assert not (Path(path) / "_delta_log").exists()
    ended(write(batches.read(spark), checkpoint).start(path))
    assert (DeltaTable(path).version(), len(written(path))) == (0, 10)
