"""Streams: late reports arrive as files and are merged into silver, while gold follows bronze.

```text
files ──► stream ──► each batch: appended to bronze, MERGE into silver
                                     │
                                     ▼
                               bronze ──► stream ──► sums in gold, replaced by each batch
```

Both streams end after the first files and are started again. Each continues where it stopped, and no report is counted
twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.streaming.query import StreamingQuery

from demo import flights, silver

_APPLICATION = "late reports"


@dataclass(frozen=True)
class Tables:
    """The tables that the streams read and write."""

    bronze: str
    silver: str
    gold: str


def sums(reports: DataFrame) -> DataFrame:
    """Returns the number of reports and the sum of their miles for each month and airport."""
    return reports.groupBy("month", "origin").agg(
        F.count("*").alias("reports"), F.sum("distance").alias("miles")
    )


def deliver(reports: DataFrame, inbox: Path) -> None:
    """Writes reports as a file into the directory that the stream watches."""
    reports.coalesce(1).write.mode("append").parquet(str(inbox))


def merge_files(spark: SparkSession, inbox: Path, tables: Tables, checkpoint: Path) -> StreamingQuery:
    """Starts the stream that writes the files' reports into bronze and silver."""

    def add(batch: DataFrame, number: int) -> None:
        appended = batch.write.format("deltalog").mode("append")
        # After a failure, Spark may repeat a batch. In that case the append is skipped, and the MERGE changes nothing.
        appended.option("txnAppId", _APPLICATION).option("txnVersion", number).save(tables.bronze)
        silver.merge(batch, tables.silver)

    files = spark.readStream.schema(flights.SPARK_SCHEMA).parquet(str(inbox))
    return files.writeStream.foreachBatch(add).option("checkpointLocation", str(checkpoint)).start()


def keep_sums(spark: SparkSession, tables: Tables, checkpoint: Path) -> None:
    """Brings gold up to date with a stream that reads bronze up to its newest version and then ends."""
    reports = spark.readStream.format("deltalog").load(tables.bronze)
    writer = sums(reports).writeStream.format("deltalog").outputMode("complete").trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start(tables.gold).awaitTermination()


@contextmanager
def merging(spark: SparkSession, inbox: Path, tables: Tables, checkpoint: Path) -> Iterator[None]:
    """Runs the stream of files during a `with` block. At the end of the block, the stream processes all files and is
    stopped.
    """
    query = merge_files(spark, inbox, tables, checkpoint)
    try:
        yield
        query.processAllAvailable()
    finally:
        query.stop()
