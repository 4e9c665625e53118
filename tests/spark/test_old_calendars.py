"""Files with dates and timestamps in Spark's old calendar (written with `spark.sql.parquet.*RebaseModeInWrite`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog
from tests.crafted import CraftedTable

DAYS = [
    "0001-01-01",
    "0100-03-01",
    "1000-02-28",
    "1500-01-01",
    "1582-10-04",
    "1582-10-15",
    "1899-12-31",
    "2024-02-29",
]
REBASE = ["spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite"]
ZONE, TIMES = "spark.sql.session.timeZone", "spark.sql.parquet.outputTimestampType"


@pytest.fixture(params=["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def old(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Returns a session that writes the old calendar in UTC, and timestamps in one of Spark's three Parquet types."""
    before = {name: spark.conf.get(name) for name in [*REBASE, ZONE, TIMES]}
    for name in REBASE:
        spark.conf.set(name, "LEGACY")
    spark.conf.set(ZONE, "UTC")
    spark.conf.set(TIMES, request.param)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value or "")


def rows(spark: SparkSession, days: list[str]) -> DataFrame:
    values = ", ".join(f"(DATE '{day}', TIMESTAMP '{day} 01:02:03.456')" for day in days)
    return spark.sql(
        f"SELECT day, at, named_struct('day', day) AS inside, array(day) AS days FROM VALUES {values} AS t(day, at)"
    ).coalesce(1)


def table(frame: DataFrame, path: Path) -> deltalog.DeltaTable:
    """Writes plain Parquet files with Spark, and a log that lists them."""
    frame.write.parquet(str(path))
    crafted = CraftedTable(path, frame.schema.json())
    for file in path.glob("*.parquet"):
        crafted.add(file.name)
    crafted.commit()
    return deltalog.DeltaTable(path)


def numbers(values: pa.Table) -> list[dict[str, Any]]:
    """Returns the rows with dates and timestamps as numbers of days and microseconds, which do not depend on a
    calendar.
    """
    columns = {
        "day": values["day"].cast(pa.int32()),
        "at": values["at"].cast(pa.int64()),
        "inside": pa.chunked_array([struct.field("day") for struct in values["inside"].chunks]).cast(
            pa.int32()
        ),
        "days": pa.chunked_array([days.values for days in values["days"].chunks]).cast(pa.int32()),
    }
    rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return rows


def test_rows_agree_with_spark(old: SparkSession, tmp_path: Path) -> None:
    ours = table(rows(old, DAYS), tmp_path / "t")
    read = old.read.parquet(str(tmp_path / "t")).selectExpr(
        "unix_date(day) AS day",
        "unix_micros(at) AS at",
        "unix_date(inside.day) AS inside",
        "unix_date(days[0]) AS days",
    )
    expected = [row.asDict() for row in read.collect()]
    written = [row.day for row in rows(old, DAYS).selectExpr("unix_date(day) AS day").collect()]
    assert [row["day"] for row in expected] == written
    assert numbers(pa.table(ours.to_arrow())) == expected
    for day in DAYS:
        for predicate in (f"day = DATE '{day}'", f"at = TIMESTAMP '{day} 01:02:03.456Z'"):
            assert pa.table(ours.to_arrow(predicate=predicate)).num_rows == 1, predicate


def test_timestamps_before_1900_in_other_time_zones_are_refused(old: SparkSession, tmp_path: Path) -> None:
    old.conf.set(ZONE, "Europe/Berlin")
    new = table(rows(old, DAYS[-1:]), tmp_path / "new")
    assert pa.table(new.to_arrow(["at"])).num_rows == 1
    early = table(rows(old, DAYS), tmp_path / "early")
    assert pa.table(early.to_arrow(["day"])).num_rows == len(DAYS)
    with pytest.raises(deltalog.UnsupportedFeatureError, match=r"before 1900.*Europe/Berlin"):
        pa.table(early.to_arrow(["at"]))
