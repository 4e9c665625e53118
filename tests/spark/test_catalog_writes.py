"""Statements that write to catalog tables. The tests read rows from the files, so counts do not come from the log."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from deltalog import DeltaTable, InvalidArgumentError

Rows = list[tuple[Any, ...]]


def written(path: str) -> Rows:
    """Returns the rows of the newest version, read without Spark."""
    return sorted((tuple(row.values()) for row in pa.table(DeltaTable(path).to_arrow()).to_pylist()), key=str)


def history(path: str) -> list[str]:
    return [commit["operation"] for commit in DeltaTable(path).history()]


@pytest.fixture
def table(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates the table `w` with a row in each of the partitions 0, 1 and 2, and returns its path."""
    spark.sql(
        f"CREATE TABLE w (id BIGINT, v STRING, p INT) USING deltalog PARTITIONED BY (p) LOCATION '{path}'"
    )
    spark.sql("INSERT INTO w VALUES (1, 'a', 0), (2, 'b', 1), (3, 'c', 2)")
    yield path
    spark.sql("DROP TABLE IF EXISTS w")


A, B, C = (1, "a", 0), (2, "b", 1), (3, "c", 2)

INSERTS: dict[str, Rows] = {
    "INSERT INTO w VALUES (4, 'd', 3)": [A, B, C, (4, "d", 3)],
    "INSERT INTO w (p, id) SELECT 3, 4L": [A, B, C, (4, None, 3)],
    "INSERT INTO w BY NAME SELECT 3 AS p, 4L AS id": [A, B, C, (4, None, 3)],
    "INSERT INTO w PARTITION (p = 3) SELECT 4L, 'd'": [A, B, C, (4, "d", 3)],
    "INSERT INTO w PARTITION (p) SELECT 4L, 'd', 3": [A, B, C, (4, "d", 3)],
    "INSERT INTO w VALUES (4, DEFAULT, 3)": [A, B, C, (4, None, 3)],
    "INSERT OVERWRITE w VALUES (4, 'd', 1)": [(4, "d", 1)],
    "INSERT OVERWRITE w SELECT id, upper(v), p FROM w": [(1, "A", 0), (2, "B", 1), (3, "C", 2)],
    "INSERT OVERWRITE w PARTITION (p = 1) SELECT 4L, 'd'": [A, C, (4, "d", 1)],
    "INSERT INTO w REPLACE WHERE p >= 1 SELECT 4L, 'd', 2": [A, (4, "d", 2)],
    "INSERT INTO w REPLACE WHERE id = 2 SELECT 2L, 'd', 5": [A, C, (2, "d", 5)],
}


@pytest.mark.parametrize("statement", INSERTS)
def test_inserts(spark: SparkSession, table: str, statement: str) -> None:
    spark.sql(statement)
    assert written(table) == sorted(INSERTS[statement], key=str)
    assert DeltaTable(table).version() == 2


def test_dynamic_overwrites_replace_the_partitions_of_the_rows(spark: SparkSession, table: str) -> None:
    setting = "spark.sql.sources.partitionOverwriteMode"
    spark.conf.set(setting, "dynamic")
    try:
        spark.sql("INSERT OVERWRITE w VALUES (4, 'd', 1)")
        assert written(table) == [A, C, (4, "d", 1)]
        spark.sql("INSERT OVERWRITE w PARTITION (p = 2) SELECT id, 'e' FROM w WHERE p = 2")
        assert written(table) == [A, (3, "e", 2), (4, "d", 1)]
    finally:
        spark.conf.unset(setting)


def row(spark: SparkSession, *values: Any) -> DataFrame:
    return spark.createDataFrame([values], "id long, v string, p int")


def test_write_to(spark: SparkSession, table: str) -> None:
    row(spark, 4, "d", 0).writeTo("w").append()
    assert written(table) == [A, B, C, (4, "d", 0)]
    row(spark, 5, "e", 0).writeTo("w").overwritePartitions()
    assert written(table) == [B, C, (5, "e", 0)]
    row(spark, 6, "f", 1).writeTo("w").overwrite(sf.col("p") == 1)
    assert written(table) == [C, (5, "e", 0), (6, "f", 1)]
    row(spark, 7, "g", 9).writeTo(f"deltalog.`{table}`").overwrite(sf.lit(True))
    assert written(table) == [(7, "g", 9)]
    spark.createDataFrame([(8, 1)], "id long, p int").writeTo("w").append()
    assert written(table) == [(7, "g", 9), (8, None, 1)]


def test_rows_outside_the_condition_of_an_overwrite_are_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match="replaceWhere"):
        spark.sql("INSERT INTO w REPLACE WHERE p = 1 SELECT 4L, 'd', 2")
    assert written(table) == [A, B, C]


def test_inserts_that_do_not_fit_change_nothing(spark: SparkSession, table: str) -> None:
    for statement, error in {
        "INSERT INTO w SELECT 1L, 'x'": "NOT_ENOUGH_DATA_COLUMNS",
        "INSERT INTO w SELECT 1L, 'x', 1, 2": "TOO_MANY_DATA_COLUMNS",
        "INSERT INTO w BY NAME SELECT 1L AS id, 2 AS z": "(?i)EXTRA_COLUMNS|has no column z",
        "INSERT INTO w SELECT 1L, 'x', 'one'": "CAST_INVALID_INPUT",
        "INSERT INTO w SELECT 1L, raise_error('no'), 1": "no",
    }.items():
        with pytest.raises(PySparkException, match=error):
            spark.sql(statement)
        assert written(table) == [A, B, C], statement
    assert DeltaTable(table).version() == 1


def test_save_as_table_keeps_the_definition(spark: SparkSession, table: str) -> None:
    """`saveAsTable` matches columns by name, merges schemas on request, and overwrites the rows but not the table's
    definition.
    """
    spark.range(4, 5).withColumn("p", sf.lit(3)).write.format("deltalog").mode("append").saveAsTable("w")
    assert written(table) == sorted([A, B, C, (4, None, 3)], key=str)
    more = spark.range(5, 6).selectExpr("id", "'e' AS v", "3 AS p", "1 AS n")
    with pytest.raises(AnalysisException, match="no column n"):
        more.write.format("deltalog").mode("append").saveAsTable("w")
    more.write.format("deltalog").mode("append").option("mergeSchema", True).saveAsTable("w")
    assert spark.table("w").columns == ["id", "v", "p", "n"]
    replacing = (
        row(spark, 9, "z", 3).write.format("deltalog").mode("overwrite").option("replaceWhere", "p = 3")
    )
    replacing.saveAsTable("w")
    assert written(table) == sorted([(*A, None), (*B, None), (*C, None), (9, "z", 3, None)], key=str)
    row(spark, 1, "x", 1).write.format("deltalog").mode("overwrite").saveAsTable("w")
    assert written(table) == [(1, "x", 1, None)]
    assert DeltaTable(table).metadata().partition_columns == ["p"]
    for mode, error in (("error", "ALREADY_EXISTS"), ("ignore", None)):
        writer = row(spark, 2, "y", 1).write.format("deltalog").mode(mode)
        if error is None:
            writer.saveAsTable("w")
        else:
            with pytest.raises(AnalysisException, match=error):
                writer.saveAsTable("w")
    assert written(table) == [(1, "x", 1, None)]


def test_truncate(spark: SparkSession, table: str) -> None:
    spark.sql("TRUNCATE TABLE w")
    assert (written(table), history(table)[0]) == ([], "TRUNCATE")
    assert spark.sql("SELECT count(*) FROM w VERSION AS OF 1").collect()[0][0] == 3


def test_explain_writes_nothing(spark: SparkSession, table: str) -> None:
    for statement in (
        *INSERTS,
        "TRUNCATE TABLE w",
        "CREATE OR REPLACE TABLE w USING deltalog AS SELECT 1 AS a",
    ):
        [[text]] = spark.sql(f"EXPLAIN {statement}").collect()
        assert "Exception" not in text, statement
    assert DeltaTable(table).version() == 1
