"""MERGE from sources with many columns that are computed from one expression."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from benches.contenders.spark_session import with_jvm
from benches.watch import Watch

_WIDTHS = (150, 750, 1500)


def wide_merge(watch: Watch, spark: SparkSession, format_: str, target: str) -> dict[str, Any]:
    """Merges three rows, so that nearly all time is spent on the plan and its generated code."""
    with_jvm(watch, spark)
    merged = {}
    for width in _WIDTHS:
        rows = spark.range(3).selectExpr("id", *(f"id * 2 + 1 AS c{number}" for number in range(width)))
        path = f"{target}/{width}"
        rows.write.format(format_).save(path)
        rows.createOrReplaceTempView("wide")
        name = f"{width} columns"
        with watch(name):
            [row] = spark.sql(
                f"MERGE INTO {format_}.`{path}` AS target USING wide ON target.id = wide.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()
        merged[f"{name}, updated"] = row["num_updated_rows"]
    return merged
