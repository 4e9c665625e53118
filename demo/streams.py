"""Streams: late reports arrive as files and are merged into silver, while gold follows bronze.

```text
files ──► stream ──► each batch: appended to bronze, MERGE into silver
                                     │
                                     ▼
                               bronze ──► stream ──► sums in gold, replaced by each batch
```

Both end after the first files and are started again. Each continues where it was, and no report counts twice.
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
    """Returns number and miles of the reports of each month and airport."""
    return reports.groupBy("month", "origin").agg(
        F.count("*").alias("reports"), F.sum("distance").alias("miles")
    )


def deliver(reports: DataFrame, inbox: Path) -> None:
    """Puts reports into the directory, as a file."""
    reports.coalesce(1).write.mode("append").parquet(str(inbox))


def merge_files(spark: SparkSession, inbox: Path, tables: Tables, checkpoint: Path) -> StreamingQuery:
    """Starts the stream of files into bronze and silver."""

    def add(batch: DataFrame, number: int) -> None:
        appended = batch.write.format("deltalog").mode("append")
        # A batch may come again after a failure. The append is then not repeated, and the MERGE changes nothing.
        appended.option("txnAppId", _APPLICATION).option("txnVersion", number).save(tables.bronze)
        silver.merge(batch, tables.silver)

    files = spark.readStream.schema(flights.SPARK_SCHEMA).parquet(str(inbox))
    return files.writeStream.foreachBatch(add).option("checkpointLocation", str(checkpoint)).start()


def keep_sums(spark: SparkSession, tables: Tables, checkpoint: Path) -> None:
    """Brings gold up to date, by a stream of bronze that ends with the newest version."""
    reports = spark.readStream.format("deltalog").load(tables.bronze)
    writer = sums(reports).writeStream.format("deltalog").outputMode("complete").trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start(tables.gold).awaitTermination()


@contextmanager
def merging(spark: SparkSession, inbox: Path, tables: Tables, checkpoint: Path) -> Iterator[None]:
    """Runs the stream of files. At the end of the `with`, it has done all that there is, and is stopped."""
    query = merge_files(spark, inbox, tables, checkpoint)
    try:
        yield
        query.processAllAvailable()
    finally:
        query.stop()
