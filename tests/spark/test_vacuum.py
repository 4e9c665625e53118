"""VACUUM on Spark, as a SQL statement, a procedure and a Python method, with the same names as in the JVM connector."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from deltalog import DeltaTable, InvalidArgumentError
from deltalog.spark import tables
from deltalog.spark.sql.vacuum import CHECK, LITE

pytestmark = pytest.mark.newest


@pytest.fixture
def table(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates a table at `path`, and returns its name. It has a file that was removed, and a file that belongs to no
    version.
    """
    spark.sql(f"CREATE TABLE v (a INT) USING deltalog LOCATION '{path}'")
    spark.sql("INSERT INTO v VALUES (1)")
    spark.sql("INSERT OVERWRITE v VALUES (2)")
    Path(path, "orphan.parquet").touch()
    for file in Path(path).glob("*.parquet"):
        os.utime(file, (0, 0))
    yield "v"
    spark.sql("DROP TABLE v")


@pytest.fixture
def unchecked(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(CHECK, "false")
    yield
    spark.conf.unset(CHECK)


def _files(path: str) -> set[str]:
    return {file.name for file in Path(path).glob("*.parquet")}


def test_a_dry_run_shows_the_files(spark: SparkSession, path: str, table: str) -> None:
    orphan = f"file:{path}/orphan.parquet"
    before = _files(path)
    row = f"SELECT '{orphan}' AS path, 1L AS length, false AS isDir, 0L AS modificationTime"
    for statement in (
        "VACUUM v DRY RUN",
        f"vacuum deltalog.`{path}` dry run retain 168 hours;",
        f"VACUUM '{path}' FULL RETAIN 168.5 HOURS DRY RUN",
        f"VACUUM v USING INVENTORY ({row}) DRY RUN",
        "CALL deltalog.vacuum('v', dry_run => true)",
        "CALL deltalog.vacuum('v', 200, true, 'full')",
    ):
        found = spark.sql(statement)
        assert found.columns == ["path"], statement
        assert [row.path for row in found.collect()] == [orphan], statement
    assert spark.sql("VACUUM v RETAIN :hours HOURS DRY RUN", args={"hours": 170}).count() == 1
    assert _files(path) == before
    assert "Call spark_catalog.deltalog.vacuum" in spark.sql("EXPLAIN VACUUM v").collect()[0].plan
    assert DeltaTable(path).version() == 2


def test_files_are_deleted(spark: SparkSession, path: str, table: str, unchecked: None) -> None:
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "why")
    try:
        assert spark.sql("VACUUM v RETAIN 0 HOURS").collect() == [(f"file:{path}",)]
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    assert len(_files(path)) == 1
    assert spark.table("v").collect() == [(2,)]
    start = DeltaTable(path).history(2)[1]
    assert (start["operation"], start["userMetadata"]) == ("VACUUM START", "why")
    assert start["operationMetrics"]["numFilesToDelete"] == "2"


def test_the_verb(spark: SparkSession, path: str, table: str, unchecked: None) -> None:
    verbs = tables.DeltaTable.forPath(spark, path)
    found = verbs.vacuum()
    assert (found.columns, found.collect()) == ([], [])
    assert len(_files(path)) == 2
    verbs.vacuum(0)
    assert len(_files(path)) == 1


def test_the_log_alone(spark: SparkSession, path: str, table: str, unchecked: None) -> None:
    assert spark.sql("VACUUM v LITE RETAIN 0 HOURS DRY RUN").count() == 1
    spark.conf.set(LITE, "true")
    try:
        assert spark.sql("VACUUM v RETAIN 0 HOURS DRY RUN").count() == 1
        assert spark.sql("VACUUM v FULL RETAIN 0 HOURS DRY RUN").count() == 2
    finally:
        spark.conf.unset(LITE)


def test_what_is_refused(spark: SparkSession, path: str, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match=CHECK):
        spark.sql("VACUUM v RETAIN 1 HOURS")
    with pytest.raises(InvalidArgumentError, match="retention of 0 hours"):
        tables.DeltaTable.forPath(spark, path).vacuum(0)
    with pytest.raises(InvalidArgumentError, match="retention_hours cannot be -1"):
        spark.sql("VACUUM v RETAIN -1 HOURS")
    with pytest.raises(InvalidArgumentError, match="cannot be used with LITE"):
        spark.sql("VACUUM v LITE USING INVENTORY v DRY RUN")
    with pytest.raises(InvalidArgumentError, match="no column path"):
        spark.sql("VACUUM v USING INVENTORY v DRY RUN")
    for text in (
        "VACUUM",
        "VACUUM v RETAIN HOURS",
        "VACUUM v DRY RETAIN 168 HOURS",
        "VACUUM v DRY USING INVENTORY x",
        "VACUUM v USING RETAIN 168 HOURS",
        "VACUUM v RETAIN 1 DAYS",
        "VACUUM v LITE FULL",
        "VACUUM v DRY RUN DRY RUN",
        "VACUUM v RETAIN 1 HOURS RETAIN 2 HOURS",
        "VACUUM v USING INVENTORY",
        "VACUUM v DRY",
    ):
        with pytest.raises(ParseException):
            spark.sql(text)
    assert DeltaTable(path).version() == 2
