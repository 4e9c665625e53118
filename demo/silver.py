"""Builds the silver table, changes it with late data, and applies its changes to gold.

```text
bronze ──► silver ◄── MERGE: reports that bronze has received since
             │    ◄── MERGE: reports that arrive as files, by a stream
             │    ◄── DELETE: aircraft whose owners ask for it
             ▼
     change data feed ──► MERGE into gold
```
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

import deltalog.spark
from demo import flights

FORGOTTEN = ("N725MQ", "N722MQ", "N723MQ")
"""The tail numbers of aircraft whose owners ask to be forgotten."""

KIND = {"insert": "inserted", "update_postimage": "updated", "delete": "deleted"}

_PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class Changes:
    """How many rows a version of silver has changed, by kind."""

    version: int
    statement: str
    rows: dict[str, int]


def cleaned(reports: DataFrame) -> DataFrame:
    """Returns the flights that took off, with departure and arrival as timestamps. Flights that are still in the air
    have no arrival.
    """
    spark = reports.sparkSession
    airlines = spark.read.csv(str(flights.data_directory() / "airlines.csv"), header=True).withColumnRenamed(
        "name", "airline"
    )
    return (
        reports.where(F.col("dep_delay").isNotNull())
        .join(F.broadcast(airlines), "carrier")
        .select(
            F.make_date("year", "month", "day").alias("date"),
            "airline",
            F.concat("carrier", "flight").alias("flight"),
            "tailnum",
            "origin",
            "dest",
            F.col("time_hour").alias("scheduled"),
            "dep_delay",
            "arr_delay",
            "air_time",
            "distance",
        )
    )


def build(bronze: DataFrame, path: str) -> None:
    """Writes the flights in random order, so each file has days from the whole year until `maintenance.order` orders
    the rows.
    """
    flown = cleaned(bronze).repartition(16)
    flown.write.format("deltalog").options(**_PROPERTIES).mode("overwrite").save(path)


def merge_reports(spark: SparkSession, bronze: str, since: int, silver: str) -> DataFrame:
    """Merges the reports that bronze has received after its version `since` into silver. Returns how many rows were
    changed, by kind.
    """
    feed = spark.read.format("deltalog").option("readChangeFeed", True).option("startingVersion", since + 1)
    return merge(feed.load(bronze), silver)


def merge(reports: DataFrame, silver: str) -> DataFrame:
    """Merges reports into silver: known flights are updated, and new ones are inserted. Returns how many rows were
    changed, by kind.
    """
    cleaned(reports).createOrReplaceTempView("reports")
    return reports.sparkSession.sql(f"""
        MERGE INTO deltalog.`{silver}` AS known USING reports
        ON known.date = reports.date AND known.scheduled = reports.scheduled AND known.flight = reports.flight
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *""")


def forget(spark: SparkSession, silver: str) -> DataFrame:
    """Deletes the flights of some aircraft. Returns the number of deleted rows."""
    return deltalog.spark.DeltaTable.forPath(spark, silver).delete(F.col("tailnum").isin(*FORGOTTEN))


def changes(spark: SparkSession, silver: str, since: int) -> DataFrame:
    """Returns the change data feed of silver after the version `since`."""
    feed = spark.read.format("deltalog").option("readChangeFeed", True).option("startingVersion", since + 1)
    return feed.load(silver)


def delays(silver: DataFrame) -> DataFrame:
    """Returns the number of flights and the sum of their delays in minutes for each month and airport."""
    return silver.groupBy(F.month("date").alias("month"), "origin").agg(
        F.count("*").alias("flights"), F.sum("dep_delay").alias("minutes")
    )


def carry_on(spark: SparkSession, feed: DataFrame, gold: str) -> DataFrame:
    """Adds the changes to the sums in gold, instead of computing the sums again. Returns how many rows were changed,
    by kind.
    """
    sign = F.when(F.col("_change_type").isin("insert", "update_postimage"), 1).otherwise(-1)
    difference = feed.groupBy(F.month("date").alias("month"), "origin").agg(
        F.sum(sign).alias("flights"), F.sum(sign * F.col("dep_delay")).alias("minutes")
    )
    table = deltalog.spark.DeltaTable.forPath(spark, gold).alias("known")
    sums = {name: f"known.{name} + new.{name}" for name in ("flights", "minutes")}
    return (
        table.merge(difference.alias("new"), "known.month = new.month AND known.origin = new.origin")
        .whenMatchedUpdate(set=sums)
        .whenNotMatchedInsertAll()
        .execute()
    )


def by_version(spark: SparkSession, feed: DataFrame, silver: str) -> list[Changes]:
    """Returns how many rows each version in the change data feed has changed."""
    history = deltalog.spark.DeltaTable.forPath(spark, silver).history()
    statements = {row["version"]: row["operation"] for row in history.collect()}
    found: dict[int, dict[str, int]] = {}
    for row in feed.groupBy("_commit_version", "_change_type").count().collect():
        if row["_change_type"] in KIND:
            found.setdefault(row["_commit_version"], {})[KIND[row["_change_type"]]] = row["count"]
    return [Changes(version, statements[version], rows) for version, rows in sorted(found.items())]
