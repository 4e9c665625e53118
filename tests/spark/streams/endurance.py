"""Runs a stream from one table to another in many small batches, and prints the used memory from time to time.

    python -m tests.spark.streams.endurance DIRECTORY BATCHES

Each line of the output is a JSON object with the number of finished batches, and with the memory of this process and
of the JVM's heap after a garbage collection, in megabytes. Spark keeps records of past batches, jobs and stages. Their
number is limited here, so that they do not hide a leak.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import write_deltalake

SAMPLES = 6
FEW = "20"
# Without Hadoop's native library, Spark's default class for checkpoint files starts twenty processes for each batch.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
KEPT = (
    "spark.sql.streaming.numRecentProgressUpdates",
    "spark.sql.streaming.minBatchesToRetain",
    "spark.sql.ui.retainedExecutions",
    "spark.ui.retainedJobs",
    "spark.ui.retainedStages",
    "spark.ui.retainedTasks",
)


def resident() -> float:
    """Returns the memory of this process in MB."""
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024


def main(directory: Path, batches: int) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in KEPT:
        builder = builder.config(name, FEW)
    builder = builder.config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
    spark = deltalog.spark.enable(builder.config("spark.ui.showConsoleProgress", "false").getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    runtime = spark._jvm.java.lang.Runtime.getRuntime()  # type: ignore[union-attr]
    source, target = str(directory / "source"), str(directory / "target")
    row = pa.table({"id": pa.array([1], pa.int64())})

    def say(**what: int) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    def sample(done: int) -> None:
        gc.collect()
        runtime.gc()
        used = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
        say(batches=done, python=round(resident()), heap=round(used))

    write_deltalake(source, row, mode="append")
    frame = spark.readStream.format("deltalog").option("maxFilesPerTrigger", 1).load(source)
    writer = frame.writeStream.format("deltalog").option("checkpointLocation", str(directory / "checkpoint"))
    query = writer.start(target)
    for number in range(SAMPLES):
        for _ in range(batches // SAMPLES):
            write_deltalake(source, row, mode="append")
        query.processAllAvailable()
        sample((number + 1) * batches // SAMPLES)
    query.stop()
    say(rows=spark.read.format("deltalog").load(target).count())
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
