"""Functions that run statements through the methods of `DeltaTable`. Tests use them in a classic session and in a
Spark Connect client.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

Scenario = Callable[[SparkSession, Any], DataFrame]


def source(spark: SparkSession) -> DataFrame:
    """Returns a source for a MERGE, with rows that match, rows that do not match, and a NULL."""
    rows = [(i, f"m{i}") for i in range(200, 400, 5)]
    return spark.createDataFrame([*rows, (None, "null")], "id long, s string")


def delete(spark: SparkSession, table: Any) -> DataFrame:
    result: DataFrame = table.delete("id % 10 = 3 OR s LIKE 's28%'")
    return result


def delete_by_column(spark: SparkSession, table: Any) -> DataFrame:
    result: DataFrame = table.alias("t").delete((sf.col("t.s") == "s200") | (sf.col("id") == -1))
    return result


def delete_nothing(spark: SparkSession, table: Any) -> DataFrame:
    result: DataFrame = table.delete("id > 5000")
    return result


def update(spark: SparkSession, table: Any) -> DataFrame:
    """Updates the partition column, and assigns values that are cast to the types of their columns."""
    result: DataFrame = table.update("id < 50", {"s": sf.col("id") * 2, "p": "CAST(p + 10 AS BIGINT)"})
    return result


def merge(spark: SparkSession, table: Any) -> DataFrame:
    """Merges with all kinds of clauses. Both tables have columns of the same names."""
    given = source(spark)
    result: DataFrame = (
        table.alias("t")
        .merge(given.alias("u"), "t.id = u.id")
        .whenMatchedUpdate("u.id % 3 = 0", {"s": "concat(t.s, u.s)", "t.p": "t.p + 1"})
        .whenMatchedDelete(sf.col("u.id") % 3 == 1)
        .whenNotMatchedInsert("id % 2 = 0", {"id": "u.id", "p": "7", "s": given["s"]})
        .whenNotMatchedInsert("id > 370", {"p": "8L", "id": "id"})
        .whenNotMatchedBySourceUpdate("id < 20", {"s": "'alone'", "p": "p"})
        .whenNotMatchedBySourceDelete("s = 's100'")
        .execute()
    )
    return result


def upsert(spark: SparkSession, table: Any) -> DataFrame:
    given = source(spark).withColumn("P", sf.lit(9)).where("id % 20 = 0").alias("u")
    matches = sf.col("t.id") == sf.col("u.id")
    builder = table.alias("t").merge(given, matches).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    result: DataFrame = builder.execute()
    return result


def merge_from_itself(spark: SparkSession, table: Any) -> DataFrame:
    given = table.toDF().where("id BETWEEN 20 AND 30").selectExpr("id + 1 AS k", "s AS other")
    builder = table.merge(given, "id = k").whenMatchedUpdate(set={"s": "other"})
    result: DataFrame = builder.execute()
    return result


def delete_matches(spark: SparkSession, table: Any) -> DataFrame:
    """Merges a source in which two rows match the same row of the table. This is allowed if the only clause deletes."""
    given = source(spark)
    result: DataFrame = (
        table.alias("t")
        .merge(given.union(given).alias("s"), "t.id = s.id AND s.id < 260")
        .whenMatchedDelete()
        .execute()
    )
    return result


def insert(spark: SparkSession, table: Any) -> DataFrame:
    """Merges a source that has a row twice, which is inserted twice."""
    given = source(spark)
    builder = table.alias("t").merge(given.union(given).alias("s"), "t.id <=> s.id")
    result: DataFrame = builder.whenNotMatchedInsert(values={"id": "s.id", "p": "1"}).execute()
    return result


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        delete,
        delete_by_column,
        delete_nothing,
        update,
        merge,
        upsert,
        merge_from_itself,
        delete_matches,
        insert,
    )
}
