"""The statements of `spark-statements`, and the share of their work that plain Spark can do on Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.pandas.types import to_arrow_schema

from benches.contenders import changed
from benches.contenders.spark_session import with_jvm
from benches.watch import Watch

_VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
_MERGE = f"MERGE INTO {{}} AS target USING source ON target.{changed.KEY} = source.{changed.KEY} "
_UPDATE = "WHEN MATCHED THEN UPDATE SET d0 = source.d0 "
_INSERT = f"WHEN NOT MATCHED THEN INSERT ({changed.KEY}, i1, d0) VALUES (source.{changed.KEY}, source.i1, source.d0)"

_STATEMENTS = {
    "delete": f"DELETE FROM {{}} WHERE {changed.DELETE}",
    "update": f"UPDATE {{}} SET d0 = d0 + 1 WHERE {changed.UPDATE}",
    "merge": _MERGE + _UPDATE + _INSERT,
    "merge, insert only": _MERGE + _INSERT,
    "merge, delete only": _MERGE + "WHEN MATCHED THEN DELETE",
    "merge, half of the rows": _MERGE.replace("source ON", "half AS source ON") + _UPDATE,
}


def statements(watch: Watch, spark: SparkSession, format_: str, table: str) -> dict[str, Any]:
    """Runs each statement on a table with deletion vectors and on a table without."""
    with_jvm(watch, spark)
    schema = to_arrow_schema(spark.read.format(format_).load(table).schema)
    for name, rows in (("source", changed.source(schema)), ("half", changed.half(schema))):
        spark.createDataFrame(rows).createOrReplaceTempView(name)

    def named(path: str) -> str:
        return f"{format_}.`{path}`"

    updated: dict[str, int] = {}

    def statement(name: str) -> Callable[[str], object]:
        def run(path: str) -> None:
            row = spark.sql(_STATEMENTS[name].format(named(path))).collect()[0].asDict()
            updated[f"{name}, updated"] = row.get("num_updated_rows", row["num_affected_rows"])

        return run

    def count(path: str) -> int:
        return spark.read.format(format_).load(path).count()

    def with_vectors(path: str) -> None:
        spark.sql(f"ALTER TABLE {named(path)} SET {_VECTORS}")

    run = {name: statement(name) for name in _STATEMENTS}
    left = changed.measure(watch, table, "", run, count, with_vectors)
    return {**left, **changed.measure(watch, table, ", rewrite", run, count), **updated}


def rows_alone(watch: Watch, spark: SparkSession, table: str, target: str) -> dict[str, Any]:
    """Finds the positions of the rows that DELETE and MERGE delete. Finds the rows that UPDATE and MERGE change, and
    writes their new values as Parquet. The files of the table stay as they are.
    """
    with_jvm(watch, spark)
    frame = spark.read.option("pathGlobFilter", "*.parquet").parquet(table)
    source = spark.createDataFrame(changed.source(to_arrow_schema(frame.schema)))
    source.createOrReplaceTempView("source")
    given = F.broadcast(source.select(changed.KEY, F.col("d0").alias("new")))
    placed = frame.withColumn("at", F.col("_metadata.row_index"))

    def find(name: str, rows: DataFrame) -> int:
        with watch(name):
            count, _ = rows.agg(F.count("*"), F.sum("at")).collect()[0]
        return int(count)

    def write(name: str, rows: DataFrame) -> int:
        with watch(name):
            rows.write.parquet(f"{target}/{name}")
        return spark.read.parquet(f"{target}/{name}").count()

    find("merge, delete only", placed.join(given, changed.KEY))
    return {
        "delete, updated": find("delete", placed.where(changed.DELETE)),
        "update, updated": write("update", frame.where(changed.UPDATE).withColumn("d0", F.col("d0") + 1)),
        "merge, updated": write(
            "merge", frame.join(given, changed.KEY).withColumn("d0", F.col("new")).drop("new")
        ),
    }
