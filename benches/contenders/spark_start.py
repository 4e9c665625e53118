"""Measures the first deltalog statements in a session that has already run another statement, like most cells of a
notebook.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from benches.contenders.spark_session import session
from benches.watch import Watch


def started() -> SparkSession:
    spark = session()
    spark.range(10).selectExpr("sum(id)").collect()
    return spark


def selects(watch: Watch, spark: SparkSession, format_: str, table: str) -> dict[str, Any]:
    for order in ("first", "second"):
        with watch(f"{order} SELECT"):
            [[total]] = spark.sql(f"SELECT sum(i1) FROM {format_}.`{table}`").collect()
    return {"sum": total}


def merges(watch: Watch, spark: SparkSession, format_: str, target: str) -> dict[str, Any]:
    """Merges one row into a table of one row, so nearly all time is the overhead of a statement."""
    spark.sql(f"CREATE TABLE {format_}.`{target}` (id BIGINT, value BIGINT) USING {format_}")
    spark.range(1).selectExpr("id", "id AS value").write.format(format_).mode("append").save(target)
    updated = 0
    for order in ("first", "second"):
        with watch(f"{order} MERGE of a row"):
            [row] = spark.sql(
                f"MERGE INTO {format_}.`{target}` AS target USING (SELECT 0L AS id, 1L AS value) AS source "
                "ON target.id = source.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()
        updated += row["num_updated_rows"]
    return {"updated": updated}
