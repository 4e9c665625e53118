"""Stateful queries from one table to another give the same rows and progress as between directories of Parquet
files.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from deltalog import write_deltalake
from tests.spark.streams.batches import Batches, ended
from tests.spark.streams.queries import stream

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)

Query = Callable[[DataFrame], DataFrame]


def windows(events: DataFrame) -> DataFrame:
    counted = events.withWatermark("time", "10 seconds").groupBy(sf.window("time", "20 seconds"), "k")
    return counted.agg(sf.count("*").alias("n"), sf.sum("v").alias("v")).select("window.start", "k", "n", "v")


def sessions(events: DataFrame) -> DataFrame:
    counted = events.withWatermark("time", "10 seconds").groupBy(sf.session_window("time", "5 seconds"), "k")
    return counted.agg(sf.count("*").alias("n")).select("session_window.start", "k", "n")


def joined(events: DataFrame) -> DataFrame:
    left = events.where("v % 2 = 0").withWatermark("time", "10 seconds").alias("l")
    right = events.where("v % 3 = 0").withWatermark("time", "10 seconds").alias("r")
    condition = sf.expr("l.k = r.k AND r.time BETWEEN l.time AND l.time + INTERVAL 10 SECONDS")
    return left.join(right, condition, "left_outer").selectExpr("l.k", "l.v", "r.v AS w", "r.time")


def distinct(events: DataFrame) -> DataFrame:
    return events.withWatermark("time", "10 seconds").dropDuplicates(["k", "time"])


def distinct_within(events: DataFrame) -> DataFrame:
    return events.withWatermark("time", "10 seconds").dropDuplicatesWithinWatermark(["k"])


def transformed(events: DataFrame) -> DataFrame:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class Running(StatefulProcessor):
        """A stateful function that returns the sum of a key's values so far."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self._sum = handle.getValueState("sum", "total bigint")

        def handleInputRows(self, key: Any, rows: Any, timer_values: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
            found: Any = self._sum.get()
            known = found[0] if self._sum.exists() else 0
            total = known + sum(int(part["v"].sum()) for part in rows)
            self._sum.update((total,))
            yield pd.DataFrame({"k": [key[0]], "total": [total]})

        def close(self) -> None:
            pass

    return events.groupBy("k").transformWithStateInPandas(
        Running(), "k bigint, total bigint", outputMode="Append", timeMode="None"
    )


# Each query, with whether it needs the RocksDB state store.
QUERIES: dict[str, tuple[Query, bool]] = {
    "windows": (windows, True),
    "sessions": (sessions, False),
    "joined": (joined, False),
    "distinct": (distinct, False),
    "distinct within": (distinct_within, False),
    "transformed": (transformed, True),
}
QUICK = {"windows", "joined"}


def add(batches: Batches, table: Path, first: int) -> None:
    """Adds the events of half a minute, as a Parquet file and as a commit. Some events are late."""
    values = list(range(first, first + 30))
    seconds = [max(0, value - 60 if value % 10 == 9 else value) for value in values]
    events = {
        "k": [value % 3 for value in values],
        "v": values,
        "time": [START + datetime.timedelta(seconds=second) for second in seconds],
    }
    batches.add(**events)
    write_deltalake(table, pa.table(events), mode="append")


def progress(query: StreamingQuery) -> list[tuple[Any, ...]]:
    """Returns the metrics of each batch that has rows or a new watermark."""
    return [
        (
            batch["batchId"],
            batch["numInputRows"],
            batch["eventTime"].get("watermark"),
            [state["numRowsTotal"] for state in batch["stateOperators"]],
            [state["numRowsDroppedByWatermark"] for state in batch["stateOperators"]],
        )
        for batch in query.recentProgress
    ]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in QUERIES]
)
@pytest.mark.oldest
def test_a_query_with_state_gives_the_same_rows_as_over_parquet(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    query, needs_rocks = QUERIES[name]
    batches, table = Batches(tmp_path / "batches"), tmp_path / "table"
    sources: dict[str, Callable[[], DataFrame]] = {
        "deltalog": lambda: stream(spark, table, startingVersion=0, maxFilesPerTrigger=1),
        "parquet": lambda: batches.read(spark),
    }
    found: dict[str, list[Any]] = {"deltalog": [], "parquet": []}
    if needs_rocks:
        spark.conf.set(STORE, ROCKS)
    try:
        # A second run processes the last batch, and continues with the state of the first run.
        for first in (0, 30, 90):
            add(batches, table, first)
            if first == 0:
                continue
            for kind, results in found.items():
                writer = query(sources[kind]()).writeStream.format(kind).trigger(availableNow=True)
                writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint of {kind}"))
                results.append(progress(ended(writer.start(str(tmp_path / kind)))))
    finally:
        spark.conf.unset(STORE)
    assert found["deltalog"] == found["parquet"]
    assert [batch[1] for batch in found["deltalog"][0]][:2] in ([30, 30], [60, 60])
    rows = {kind: spark.read.format(kind).load(str(tmp_path / kind)) for kind in found}
    expected = sorted(map(tuple, rows["parquet"].collect()), key=str)
    assert sorted(map(tuple, rows["deltalog"].collect()), key=str) == expected
    assert expected
