"""Helpers for streams that read a directory of Parquet files, one file per batch, and write to a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from deltalog import DeltaTable

Rows = list[tuple[Any, ...]]


class Batches:
    """A directory of Parquet files, which a stream reads one by one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._count = 0
        directory.mkdir()

    def add(self, **columns: Any) -> None:
        """Adds the next batch."""
        file = self.directory / f"{self._count:05}.parquet"
        pa.parquet.write_table(pa.table(columns), file)
        os.utime(file, (1_700_000_000 + self._count,) * 2)  # Spark reads the oldest file first.
        self._count += 1

    def read(self, spark: SparkSession) -> DataFrame:
        schema = spark.read.parquet(str(self.directory)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.directory))


def write(frame: DataFrame, checkpoint: Path, mode: str = "append") -> DataStreamWriter:
    """Returns a stream writer whose query ends when it has written all batches."""
    writer = frame.writeStream.format("deltalog").outputMode(mode).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(checkpoint))


def ended(query: StreamingQuery) -> StreamingQuery:
    """Waits until a query ends, and raises its error if it failed."""
    query.awaitTermination()
    return query


def written(path: str | Path) -> Rows:
    """Returns the rows of the newest version, read without Spark."""
    table = pa.table(DeltaTable(path).to_arrow())
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def history(path: str | Path) -> list[str]:
    """Returns the names of the operations in the table's history, oldest first."""
    return [commit["operation"] for commit in reversed(DeltaTable(path).history())]


def files(path: str | Path) -> int:
    """Returns the number of data files in the directory of a table, including files that belong to no version."""
    return len(list(Path(path).rglob("*.parquet")))


def repeat_batch(checkpoint: Path, number: int) -> None:
    """Makes the next run of a query repeat a batch, as if the last run had died before it recorded the batch."""
    for name in (str(number), f".{number}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
