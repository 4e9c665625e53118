"""OPTIMIZE and RESTORE on Spark, as SQL statements, procedures and Python methods, with the same names as in the JVM
connector.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from deltalog import DeltaTable, InvalidArgumentError
from deltalog.spark import tables

pytestmark = pytest.mark.newest


@pytest.fixture
def table(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates a table at `path` with three files in each of two partitions, and returns its name."""
    spark.sql(f"CREATE TABLE m (a INT, p STRING) USING deltalog PARTITIONED BY (p) LOCATION '{path}'")
    for number in range(3):
        spark.sql(f"INSERT INTO m VALUES ({number}, 'x'), ({number + 10}, 'y')")
    yield "m"
    spark.sql("DROP TABLE m")


def rows(spark: SparkSession) -> list[int]:
    return sorted(row.a for row in spark.table("m").collect())


def test_statements_and_verbs_make_fewer_files(spark: SparkSession, path: str, table: str) -> None:
    before = rows(spark)
    planned = spark.sql("CALL deltalog.optimize('m', dry_run => true)").collect()
    assert (planned[0].metrics.numFilesRemoved, DeltaTable(path).version()) == (6, 3)
    [done] = spark.sql("OPTIMIZE m WHERE p = 'x' and p is not null;").collect()
    assert done.path == f"file:{path}"
    metrics = done.metrics
    assert (metrics.numFilesAdded, metrics.numFilesRemoved, metrics.partitionsOptimized) == (1, 3, 1)
    assert (metrics.filesRemoved.totalFiles, metrics.totalConsideredFiles) == (3, 3)
    assert metrics.deletionVectorStats.numDeletionVectorsRemoved == 0
    [other] = tables.DeltaTable.forName(spark, "m").optimize().where("p = 'y'").executeCompaction().collect()
    assert (other.metrics.numFilesRemoved, len(DeltaTable(path).file_uris())) == (3, 2)
    assert spark.sql(f"optimize '{path}'").collect()[0].metrics.filesAdded.min is None
    assert rows(spark) == before
    assert [row.operation for row in spark.sql("DESCRIBE HISTORY m LIMIT 2").collect()] == ["OPTIMIZE"] * 2
    assert "Call spark_catalog.deltalog.optimize" in spark.sql("EXPLAIN OPTIMIZE m").collect()[0].plan


def test_a_session_setting_determines_the_size_of_files(spark: SparkSession, path: str, table: str) -> None:
    """A session setting determines the size of new files in bytes. It has the same name as in the JVM connector."""
    setting = "spark.databricks.delta.optimize.maxFileSize"
    try:
        spark.conf.set(setting, "1")
        assert spark.sql("OPTIMIZE m").collect()[0].metrics.numFilesRemoved == 0
        spark.conf.set(setting, "1g")
        with pytest.raises(InvalidArgumentError, match="maxFileSize cannot be '1g'"):
            spark.sql("OPTIMIZE m")
        spark.conf.set(setting, str(1 << 30))
        assert spark.sql("OPTIMIZE m ZORDER BY (a)").collect()[0].metrics.numFilesAdded == 2
    finally:
        spark.conf.unset(setting)


def test_a_restore_leaves_out_missing_files_if_the_session_does(
    spark: SparkSession, path: str, table: str
) -> None:
    """As in the JVM connector, RESTORE ignores missing files if Spark's own setting for missing files says so."""
    gone = next(Path(path).glob("p=x/*.parquet"))
    spark.sql("DELETE FROM m")
    gone.unlink()
    with pytest.raises(FileNotFoundError):
        spark.sql("RESTORE TABLE m TO VERSION AS OF 3")
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        [done] = spark.sql("RESTORE TABLE m TO VERSION AS OF 3").collect()
        assert (done.num_restored_files, len(rows(spark))) == (5, 5)
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_what_cannot_be_optimized(spark: SparkSession, path: str, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match="columns that are not partition columns"):
        spark.sql("OPTIMIZE m WHERE a = 1").collect()
    for statement in (
        "OPTIMIZE m WHERE",
        "OPTIMIZE m FULL WHERE p = 'x'",
        "OPTIMIZE m ZORDER BY",
        "OPTIMIZE m ZORDER BY ()",
        "OPTIMIZE m ZORDER BY (a",
        "OPTIMIZE m ZORDER BY a)",
        "OPTIMIZE m ZORDER BY (a,)",
        "OPTIMIZE m ZORDER (a)",
        "OPTIMIZE m ZORDER BY (a) WHERE p = 'x'",
    ):
        with pytest.raises(ParseException):
            spark.sql(statement)
    for statement, message in (
        ("OPTIMIZE m ZORDER BY (a, p)", "'p', which is a partition column"),
        ("OPTIMIZE m WHERE p = 'x' ZORDER BY `b c`.d", r"by '`b c`\.d'"),
        ("CALL deltalog.optimize('m', z_order => array())", "z_order has no columns"),
        ("CALL deltalog.optimize('m', z_order => array(NULL))", "has no name"),
        ("CALL deltalog.optimize('m', z_order => array('a'), curve => 'moore')", "no curve 'moore'"),
        ("CALL deltalog.optimize('m', curve => 'hilbert')", "name them in z_order"),
        ("OPTIMIZE m FULL", "no clustering columns"),
        (
            "CALL deltalog.optimize('m', z_order => array('a'), full => true)",
            "which a purge or a Z-order does not do",
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            spark.sql(statement).collect()
    optimizer = tables.DeltaTable.forPath(spark, path).optimize()
    with pytest.raises(InvalidArgumentError, match="by 'gone': it has no such column"):
        optimizer.executeZOrderBy("a", "gone")
    wrongs: list[tuple[Any, ...]] = [(), (1,), ([],), ("a", ["b"])]
    for wrong in wrongs:
        with pytest.raises(InvalidArgumentError, match="one or more names of columns"):
            optimizer.executeZOrderBy(*wrong)
    assert DeltaTable(path).version() == 3


def test_rows_are_ordered_by_columns(spark: SparkSession, path: str, table: str) -> None:
    before = rows(spark)
    [done] = spark.sql("OPTIMIZE m WHERE p = 'x' ZORDER BY (a);").collect()
    metrics = done.metrics
    assert (metrics.numFilesAdded, metrics.numFilesRemoved, metrics.preserveInsertionOrder) == (1, 3, False)
    assert metrics.zOrderStats.strategyName == "all"
    assert (metrics.zOrderStats.mergedFiles.num, metrics.zOrderStats.numOutputCubes) == (3, 1)
    [all_of_them] = spark.sql("optimize m zorder by `A`").collect()
    assert (all_of_them.metrics.numFilesAdded, all_of_them.metrics.numFilesRemoved) == (2, 4)
    call = "CALL deltalog.optimize('m', z_order => array('a'), curve => 'zorder', dry_run => true)"
    assert spark.sql(call).collect()[0].metrics.zOrderStats.inputOtherFiles.num == 2
    optimizer = tables.DeltaTable.forName(spark, "m").optimize().where("p = 'y'")
    assert optimizer.executeZOrderBy(["a"]).collect()[0].metrics.numFilesRemoved == 1
    assert rows(spark) == before
    assert DeltaTable(path).version() == 6
    [newest] = spark.sql("DESCRIBE HISTORY m LIMIT 1").collect()
    assert newest.operationParameters["zOrderBy"] == '["a"]'
    assert spark.sql("CALL deltalog.optimize('m')").collect()[0].metrics.zOrderStats is None
    assert (
        "optimize(m, null, false, [a], null, false)"
        in spark.sql("EXPLAIN OPTIMIZE m ZORDER BY a").collect()[0].plan
    )


def test_versions_are_restored(spark: SparkSession, path: str, table: str) -> None:
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "why")
    try:
        for version, statement in enumerate(
            (
                "RESTORE TABLE m TO VERSION AS OF 1",
                f"restore deltalog.`{path}` for version as of 2;",
                "CALL deltalog.restore('m', 1)",
                "RESTORE m VERSION AS OF 2",
            ),
            4,
        ):
            [row] = spark.sql(statement).collect()
            assert DeltaTable(path).version() == version, statement
            files = len(DeltaTable(path).file_uris())
            assert row.num_of_files_after_restore == files == (2 if "1" in statement[-4:] else 4), statement
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    newest = spark.sql("DESCRIBE HISTORY m LIMIT 1").collect()[0]
    assert (newest.operation, newest.userMetadata) == ("RESTORE", "why")
    [planned] = spark.sql("CALL deltalog.restore('m', 3, dry_run => true)").collect()
    assert (planned.num_restored_files, DeltaTable(path).version()) == (2, 7)
    found = tables.DeltaTable.forName(spark, "m").restoreToVersion(3).collect()[0]
    assert (found.num_restored_files, found.num_removed_files) == (2, 0)
    assert rows(spark) == [0, 1, 2, 10, 11, 12]


def test_a_time_is_restored_in_the_zone_of_the_session(spark: SparkSession, path: str, table: str) -> None:
    times = {commit.version: commit.timestamp for commit in DeltaTable(path).commits(0)}
    texts = spark.sql(
        f"SELECT string(timestamp_millis({times[1]})) AS one, string(timestamp_millis({times[2]})) AS two"
    ).collect()[0]
    spark.sql(f"RESTORE TABLE m TO TIMESTAMP AS OF '{texts.one}'").collect()
    assert rows(spark) == [0, 10]
    tables.DeltaTable.forName(spark, "m").restoreToTimestamp(texts.two)
    assert rows(spark) == [0, 1, 10, 11]
    recorded = spark.sql("DESCRIBE HISTORY m LIMIT 1").collect()[0].operationParameters
    assert recorded["timestamp"] == texts.two
    spark.sql(f"CALL deltalog.restore('m', timestamp => TIMESTAMP '{texts.one}')").collect()
    assert rows(spark) == [0, 10]


def test_what_cannot_be_restored(spark: SparkSession, path: str, table: str) -> None:
    assert spark.sql("RESTORE TABLE m TO VERSION AS OF 3").collect()[0].num_restored_files == 0
    with pytest.raises(InvalidArgumentError, match="either a version or a time"):
        spark.sql("CALL deltalog.restore('m')").collect()
    with pytest.raises(InvalidArgumentError, match="whole number"):
        tables.DeltaTable.forName(spark, "m").restoreToVersion("1")  # type: ignore[arg-type]
    for statement in ("RESTORE TABLE m", "RESTORE TABLE m TO VERSION 3"):
        with pytest.raises(ParseException):
            spark.sql(statement)
    assert DeltaTable(path).version() == 3
