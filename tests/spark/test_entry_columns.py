"""The columns in a table's catalog entry are kept up to date, because JDBC's `getColumns` returns them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltalog
from deltalog.spark.jvm import Jvm
from deltalog.tables import DeltaTable


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    yield "with_entry"
    for table in ("with_entry", "second_entry"):
        spark.sql(f"DROP TABLE IF EXISTS {table}")


def shown(spark: SparkSession, table: str) -> Any:
    """Returns the columns in the catalog entry. `spark.table` would take them from the log."""
    session: Any = spark._jsparkSession
    return session.sharedState().externalCatalog().getTable("default", table).schema().simpleString()


def test_definitions(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (id INT DEFAULT 1, c CHAR(2), s STRUCT<a: INT>) USING deltalog")
    assert shown(spark, name) == "struct<id:int,c:char(2),s:struct<a:int>>"
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (s.b DOUBLE, more DATE)")
    assert shown(spark, name) == "struct<id:int,c:char(2),s:struct<a:int,b:double>,more:date>"
    spark.sql(f"CREATE OR REPLACE TABLE {name} USING deltalog AS SELECT 1L AS other")
    assert shown(spark, name) == "struct<other:bigint>"
    assert [row.col_name for row in spark.sql(f"DESCRIBE {name}").collect()] == ["other"]


def test_writes_and_merges_that_add_columns(spark: SparkSession, name: str) -> None:
    spark.sql("SELECT 1 AS id").write.format("deltalog").saveAsTable(name)
    rows = spark.sql("SELECT 2 AS id, 'x' AS p")
    rows.write.format("deltalog").mode("append").option("mergeSchema", "true").saveAsTable(name)
    assert shown(spark, name) == "struct<id:int,p:string>"
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING (SELECT 3 AS id, 1.5D AS d) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert shown(spark, name) == "struct<id:int,p:string,d:double>"
    overwrite = spark.sql("SELECT 'only' AS p").write.format("deltalog").mode("overwrite")
    overwrite.option("overwriteSchema", "true").saveAsTable(name)
    assert shown(spark, name) == "struct<p:string>"


def test_earlier_versions_clones_and_tables_that_are_registered(
    spark: SparkSession, name: str, path: str
) -> None:
    spark.sql("SELECT 1 AS id").write.format("deltalog").save(path)
    spark.sql(f"CREATE TABLE {name} USING deltalog LOCATION '{path}'")
    assert shown(spark, name) == "struct<id:int>"
    spark.sql(f"ALTER TABLE {name} ADD COLUMN p STRING")
    DeltaTable.forName(spark, name).restoreToVersion(0)
    assert shown(spark, name) == "struct<id:int>"
    spark.sql(f"CREATE TABLE second_entry DEEP CLONE {name}")
    assert shown(spark, "second_entry") == "struct<id:int>"


def test_names_that_no_metastore_accepts_are_left_out(spark: SparkSession, name: str) -> None:
    spark.sql(
        f"CREATE TABLE {name} (`a,b` INT) USING deltalog TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    assert shown(spark, name) == "struct<>"
    assert spark.table(name).columns == ["a,b"]


def test_an_entry_that_cannot_be_changed_is_worth_a_warning(
    spark: SparkSession, name: str, path: str
) -> None:
    """If the catalog entry cannot be changed, there is only a warning, because the statement has already changed the
    table.
    """
    spark.sql("SELECT 1 AS id").write.format("deltalog").save(path)
    spark.sql(f"CREATE TABLE {name} USING deltalog LOCATION '{path}'")
    log = Path(path, "_delta_log")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN p STRING")
    hidden = log.rename(log.with_name("elsewhere"))
    Jvm(spark.sparkContext._gateway).static("EntryColumns", "update", spark._jsparkSession, name)
    hidden.rename(log)
    assert shown(spark, name) == "struct<id:int,p:string>"
    assert deltalog.DeltaTable(path).version() == 1


def test_parameters_in_the_condition_of_optimize(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (id INT, day DATE, p STRING) USING deltalog PARTITIONED BY (day, p)")
    for number in range(2):
        rows = f"""({number}, DATE '2024-01-01', "it's"), ({number}, NULL, 'b')"""
        spark.sql(f"INSERT INTO {name} VALUES {rows}")
    day = spark.sql("SELECT DATE '2024-01-01' AS day").collect()[0].day
    text = f"OPTIMIZE {name} WHERE day = :day AND p IN ('b', :p)"
    [done] = spark.sql(text, args={"day": day, "p": "it's"}).collect()
    assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (1, 2)
    [done] = spark.sql(f"OPTIMIZE {name} WHERE p = :p ZORDER BY (id)", args={"p": "b"}).collect()
    assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (1, 2)
    spark.sql(f"INSERT INTO {name} VALUES (7, DATE '2024-01-01', \"it's\"), (8, NULL, 'b')")
    text = f"OPTIMIZE {name} WHERE day <=> ? AND p IN (?, ?, 'c')"
    [done] = spark.sql(text, args=[day, "it's", None]).collect()
    assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (1, 2)
    [done] = spark.sql(f"OPTIMIZE {name} WHERE p = ? AND day IS NULL", args=["b"]).collect()
    assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (1, 2)
