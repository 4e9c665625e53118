"""Measures streams from one table into another, one file per batch."""

from __future__ import annotations

import statistics
from typing import Any

from pyspark.sql import SparkSession

from benches.contenders.spark_session import with_jvm
from benches.watch import Watch


def stream(watch: Watch, spark: SparkSession, format_: str, table: str, target: str) -> dict[str, Any]:
    """Runs a stream with large batches in a session that has not run a stream before, then a stream with tiny batches.

    Records the duration of the first trigger, and the median duration of the triggers in the second half of each
    stream, as Spark reports them.
    """
    with_jvm(watch, spark)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    read = {}
    for name in ("large", "tiny"):
        with watch(f"{name} batches, whole stream"):
            query = (
                spark.readStream.format(format_)
                .option("maxFilesPerTrigger", "1")
                .load(f"{table}/{name}")
                .writeStream.format(format_)
                .option("checkpointLocation", f"{target}/{name}-checkpoint")
                .trigger(availableNow=True)
                .start(f"{target}/{name}")
            )
            query.awaitTermination()
        peak = int(watch.laps[f"{name} batches, whole stream"]["peak_bytes"])
        batches = [each for each in query.recentProgress if each["numInputRows"] > 0]
        triggers = [each["durationMs"]["triggerExecution"] / 1000 for each in batches]
        if name == "large":
            watch.took("first batch of a session", triggers[0], peak)
        watch.took(f"{name} batch", statistics.median(triggers[len(triggers) // 2 :]), peak)
        read[f"{name}, batches"] = len(batches)
        read[f"{name}, rows"] = spark.read.format(format_).load(f"{target}/{name}").count()
    return read
