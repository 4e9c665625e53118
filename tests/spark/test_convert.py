"""CONVERT TO DELTA by SQL statement, procedure and Python method."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DateType, StringType, StructType

import deltalog
from deltalog import InvalidArgumentError
from deltalog.tables import DeltaTable

pytestmark = pytest.mark.newest


def written(spark: SparkSession, path: Path) -> list[tuple[object, ...]]:
    """Lets Spark write a partitioned directory of Parquet files, and returns the rows that Spark reads from it."""
    rows = spark.range(12).select(
        "id",
        sf.expr("IF(id = 5, NULL, id * 1.5D)").alias("price"),
        sf.expr("timestamp_seconds(id * 86400)").alias("at"),
        sf.expr("named_struct('a', id, 'b', array(id))").alias("nested"),
        sf.expr("CASE id % 4 WHEN 0 THEN 'a/b:c' WHEN 1 THEN 'é %' WHEN 2 THEN NULL ELSE 'x=y' END").alias(
            "city"
        ),
        sf.expr("date_add(DATE'2024-01-30', CAST(id % 3 AS INT))").alias("day"),
    )
    rows.repartition(2).write.partitionBy("city", "day").parquet(str(path))
    return sorted(tuple(row) for row in spark.read.parquet(str(path)).collect())


def rows_of(spark: SparkSession, path: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.read.format("deltalog").load(str(path)).collect())


def test_what_spark_has_written_becomes_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """The table has the columns, types and rows that Spark reads from the directory."""
    path = tmp_path / "rows"
    expected = written(spark, path)
    schema = spark.read.parquet(str(path)).schema
    assert spark.sql(f"CONVERT TO DELTA parquet.`{path}`").collect() == []
    assert rows_of(spark, path) == expected
    assert spark.read.format("deltalog").load(str(path)).schema == schema
    table = deltalog.DeltaTable(path)
    assert table.count("day = '2024-01-31'") == 4
    assert table.min_max("id") == (0, 11)
    [commit] = table.history()
    assert (commit["operation"], commit["operationParameters"]["collectStats"]) == ("CONVERT", True)
    # A second conversion changes nothing.
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    assert deltalog.DeltaTable(path).version() == 0


def test_partition_columns_and_statistics_follow_the_statement(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    written(spark, path)
    explained = spark.sql(f"EXPLAIN CONVERT TO DELTA parquet.`{path}`").collect()
    assert "convert" in explained[0][0]
    assert not deltalog.DeltaTable.is_deltatable(path)
    spark.sql(f"convert to delta parquet.`{path}` NO STATISTICS PARTITIONED BY (day STRING, city STRING)")
    table = deltalog.DeltaTable(path)
    assert table.metadata().partition_columns == ["day", "city"]
    assert str(table.schema().fields[-2].type) == "string"
    assert table.history()[0]["operationParameters"]["collectStats"] is False


def test_the_procedure_returns_its_outcome(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    written(spark, path)
    call = f"CALL deltalog.convert(table => '{path}', dry_run => true)"
    [planned] = spark.sql(call).collect()
    assert (planned.version, planned.num_converted_files > 11, planned.size_in_bytes > 0) == (
        None,
        True,
        True,
    )
    assert not deltalog.DeltaTable.is_deltatable(path)
    [done] = spark.sql(f"CALL deltalog.convert('parquet.`{path}`')").collect()
    assert done[1:] == (0, *planned[2:])
    [again] = spark.sql(f"CALL deltalog.convert('{path}')").collect()
    assert again[1:] == (None, 0, 0)


def test_the_verb_returns_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    expected = written(spark, path)
    columns = StructType().add("city", StringType()).add("day", DateType())
    table = DeltaTable.convertToDelta(spark, f"parquet.`{path}`", columns)
    assert sorted(tuple(row) for row in table.toDF().collect()) == expected
    assert DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "city STRING, day DATE").count() == 12
    assert table.toDF().where(sf.col("day") == date(2024, 1, 31)).count() == 4


def test_what_cannot_be_converted_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    written(spark, path)
    with pytest.raises(InvalidArgumentError, match="is not of type integer, the type of the column 'city'"):
        spark.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (city INT, day DATE)")
    with pytest.raises(InvalidArgumentError, match="'day': city="):
        spark.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (city STRING)")
    with pytest.raises(InvalidArgumentError, match="only a directory of Parquet files can be converted"):
        spark.sql("CONVERT TO DELTA orc.`/tmp/x`")
    with pytest.raises(InvalidArgumentError, match=r"identifier cannot be .*; pass text"):
        DeltaTable.convertToDelta(spark, path)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError, match=r"partitionSchema cannot be .*; pass text or a StructType, or None"
    ):
        DeltaTable.convertToDelta(spark, f"parquet.`{path}`", ["day"])  # type: ignore[arg-type]
    for statement in ("CONVERT TO DELTA", f"CONVERT TO DELTA parquet.`{path}` NO", "CONVERT TO ICEBERG x"):
        with pytest.raises(ParseException):
            spark.sql(statement)
    assert not deltalog.DeltaTable.is_deltatable(path)
