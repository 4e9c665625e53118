"""Starts streaming queries, and reads their rows, errors and offsets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

Batches = list[list[tuple[Any, ...]]]


def stream(spark: SparkSession, path: Path | str, **options: Any) -> DataFrame:
    return spark.readStream.format("deltalog").options(**options).load(str(path))


def start(
    frame: DataFrame, checkpoint: Path, each: Callable[[DataFrame, int], None], **trigger: Any
) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start()


def finished(frame: DataFrame, checkpoint: Path, **trigger: Any) -> tuple[Batches, StreamingQuery]:
    """Runs a query until it has read all rows. Returns the sorted rows of each batch, and the query."""
    found: dict[int, list[tuple[Any, ...]]] = {}

    def each(rows: DataFrame, number: int) -> None:
        found[number] = sorted((tuple(row) for row in rows.collect()), key=str)

    query = start(frame, checkpoint, each, **(trigger or {"availableNow": True}))
    query.awaitTermination()
    return [found[number] for number in sorted(found)], query


def batches(frame: DataFrame, checkpoint: Path, **trigger: Any) -> Batches:
    return finished(frame, checkpoint, **trigger)[0]


def ids(found: Batches) -> list[list[Any]]:
    """Returns the values of the first column in each batch."""
    return [[row[0] for row in rows] for rows in found]


def append(spark: SparkSession, path: Path | str, *files: range) -> None:
    """Appends rows in one commit, with one data file for each item of `files`."""
    for values in files:
        frame = spark.range(values.start, values.stop, 1, 1)
        frame.write.format("deltalog").mode("append").save(str(path))


def _count(rows: DataFrame, number: int) -> None:
    rows.count()


def failure(frame: DataFrame, checkpoint: Path) -> tuple[Exception, str]:
    """Runs a query that must fail. Returns the exception that Python raises, and Spark's text about it."""
    query = start(frame, checkpoint, _count, availableNow=True)
    with pytest.raises(Exception) as raised:  # noqa: PT011 (the caller looks at it)
        query.awaitTermination()
    found = query.exception()
    assert isinstance(found, StreamingQueryException)
    return raised.value, str(found)


def offsets(checkpoint: Path) -> list[str]:
    """Returns the offsets of all batches in the checkpoint of a query with one source."""
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    return [file.read_text().splitlines()[-1] for file in files]


@contextmanager
def running(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stops a query at the end of the `with`."""
    try:
        yield query
    finally:
        query.stop()
