"""Runs a stream from one table to another, and kills its own processes at a given step.

    python -m tests.spark.streams.kills DIRECTORY STEP VICTIM

DIRECTORY contains the tables `source` and `target`, and the checkpoint. VICTIM is the process to kill: `jvm`, `python`
(this process), or `both`. STEP is a name of `STEPS`, or a number of batches: with 2.5, the process dies when about half
of the third batch is done. If the stream ends before it reaches the step, the program ends normally.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import deltalog
import deltalog.spark
from deltalog.spark.bridge.stream_sinks import StreamSinkCalls
from deltalog.spark.bridge.stream_sources import StreamSourceCalls
from deltalog.spark.streams import sink
from deltalog.spark.write import job

# The calls at which the process can die: an object, the name of its function, and when the process dies.
STEPS: dict[str, tuple[Any, str, str]] = {
    "the end of the batch is known": (StreamSourceCalls, "latest", "after"),
    "the offsets are in the checkpoint": (StreamSourceCalls, "batch", "before"),
    "the files of the batch are described": (StreamSourceCalls, "batch", "after"),
    "the write has begun": (sink, "begin_on", "after"),
    "tasks write": (job, "run_job", "during"),
    "the files are written": (job, "run_job", "after"),
    "the version is in the log": (sink, "run", "during"),
    "the batch is committed": (sink, "run", "after"),
    "Spark may note that the batch is done": (StreamSinkCalls, "write", "after"),
    "the source forgets the batch": (StreamSourceCalls, "release", "before"),
}


def stream(spark: SparkSession, directory: Path) -> StreamingQuery:
    """Runs the stream with one batch per file of the source, until it has read the newest version."""
    reader = spark.readStream.format("deltalog").option("startingVersion", 0).option("maxFilesPerTrigger", 1)
    writer = reader.load(str(directory / "source")).writeStream.format("deltalog").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    return writer.start(str(directory / "target"))


class Death:
    """Kills this process, its JVM, or both, at a given call."""

    def __init__(self, jvm: int, victim: str, target: Path) -> None:
        self._jvm, self._victim, self._target = jvm, victim, target

    def come(self) -> None:
        os.write(1, b"dead\n")
        if self._victim in ("both", "jvm"):
            os.kill(self._jvm, signal.SIGKILL)
        if self._victim in ("both", "python"):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)

    def come_at(self, step: str) -> None:
        owner, name, when = STEPS[step]
        setattr(owner, name, getattr(self, when)(getattr(owner, name)))

    def come_after(self, batches: float, started: float) -> None:
        """Kills the processes after a number of batches. For the fraction of a batch, the time between the starts of
        the last two batches is the estimate of a batch's duration. For the first batch, it is the time since `started`.
        """
        remaining, part = divmod(batches, 1)
        begun = [started]
        asked = StreamSourceCalls.latest

        def latest(*arguments: Any, **named: Any) -> str:
            begun.append(time.monotonic())
            if len(begun) == remaining + 2:
                threading.Timer(part * (begun[-1] - begun[-2]), self.come).start()
            return asked(*arguments, **named)

        setattr(StreamSourceCalls, "latest", latest)  # noqa: B010 (mypy would not take it)

    def before(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **named: Any) -> Any:
            self.come()
            return work(*arguments, **named)

        return done

    def after(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **named: Any) -> None:
            work(*arguments, **named)
            self.come()

        return done

    def during(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Kills the processes as soon as the call has written a new file, which is a data file or a commit."""
        pattern = "*.parquet" if work.__name__ == "run_job" else "_delta_log/*.json"

        def watched(*arguments: Any, **named: Any) -> Any:
            known = set(self._target.glob(pattern))
            threading.Thread(target=watch, args=(known,), daemon=True).start()
            return work(*arguments, **named)

        def watch(known: set[Path]) -> None:
            while set(self._target.glob(pattern)) <= known:
                time.sleep(0.0005)
            self.come()

        return watched


def main(directory: Path, step: str, victim: str) -> None:
    started = time.monotonic()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    deltalog.spark.enable(spark)
    process = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    death = Death(process, victim, directory / "target")
    if step in STEPS:
        death.come_at(step)
    else:
        death.come_after(float(step), started)
    query = stream(spark, directory)
    status = 1
    try:
        query.awaitTermination()
        status = 0
    except Exception:  # noqa: BLE001 (the exit status shows it)
        traceback.print_exc()
    finally:
        # After the JVM was killed, a normal exit would hang, because some threads wait for the JVM.
        os._exit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
