"""FSCK and REORG on Spark, as SQL statements, procedures and Python methods."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from deltalog import DeltaTable, InvalidArgumentError, MissingFileError, UnsupportedFeatureError
from deltalog.spark import tables

pytestmark = pytest.mark.newest


@pytest.fixture
def table(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates a table with three files in two partitions at `path`, and returns its name."""
    spark.sql(
        f"CREATE TABLE f (a INT, b INT, p STRING) USING deltalog PARTITIONED BY (p) LOCATION '{path}' TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    for number in range(3):
        values = f"VALUES ({number}, 1, 'x'), ({number + 10}, 1, 'x')"
        spark.sql(f"INSERT INTO f SELECT /*+ REPARTITION(1) */ * FROM {values}")
    yield "f"
    spark.sql("DROP TABLE f")


def rows(spark: SparkSession) -> list[int]:
    return sorted(row.a for row in spark.table("f").collect())


def data_files(path: str) -> list[Path]:
    return sorted(Path(unquote(uri.removeprefix("file://"))) for uri in DeltaTable(path).file_uris())


def test_missing_files_are_found_and_removed(spark: SparkSession, path: str, table: str) -> None:
    assert spark.sql("CALL deltalog.check('f', 'rows')").collect() == []
    gone, cut, _ = data_files(path)
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-5])
    found = spark.sql("CALL deltalog.check('f')").collect()
    assert sorted(row.problem for row in found) == ["damaged file", "missing file", "wrong size"]
    [missing] = [row for row in found if row.problem == "missing file"]
    assert (missing.partition_values, missing.num_rows) == ({"p": "x"}, 2)
    assert sorted(row.problem for row in tables.DeltaTable.forName(spark, "f").check("files").collect()) == [
        "missing file",
        "wrong size",
    ]
    [planned] = spark.sql("FSCK REPAIR TABLE f DRY RUN").collect()
    assert planned.dataFileMissing
    assert gone.name in planned.dataFilePath
    assert not planned.dataFileDamaged
    assert len(spark.sql(f"fsck repair table '{path}' verify all files dry run;").collect()) == 2
    assert DeltaTable(path).version() == 3
    assert spark.sql("FSCK REPAIR TABLE f").collect() == [planned]
    newest = spark.sql("DESCRIBE HISTORY f LIMIT 1").collect()[0]
    assert (newest.operation, newest.operationMetrics["numRemovedFiles"]) == ("FSCK REPAIR TABLE", "1")
    [damaged] = tables.DeltaTable.forName(spark, "f").repair(removeDamaged=True).collect()
    assert damaged.dataFileDamaged
    assert len(rows(spark)) == 2
    assert spark.sql("CALL deltalog.repair('f', remove_damaged => true)").collect() == []


def test_rows_that_were_deleted_do_not_come_back(spark: SparkSession, path: str, table: str) -> None:
    spark.sql("DELETE FROM f WHERE a = 1")
    for vector in Path(path).rglob("*.bin"):
        vector.unlink()
    with pytest.raises(MissingFileError, match="drop_files_without_vectors"):
        spark.sql("FSCK REPAIR TABLE f").collect()
    [dropped] = spark.sql("CALL deltalog.repair('f', drop_files_without_vectors => true)").collect()
    assert dropped.deletionVectorFileMissing
    assert dropped.deletionVectorPath.endswith(".bin")
    assert rows(spark) == [0, 2, 10, 12]


def test_files_are_purged(spark: SparkSession, path: str, table: str) -> None:
    spark.sql("DELETE FROM f WHERE a = 1")
    spark.sql("INSERT INTO f VALUES (20, 1, 'y')")
    spark.sql("ALTER TABLE f DROP COLUMN b")
    before = rows(spark)
    planned = spark.sql("CALL deltalog.reorg('f', dry_run => true)").collect()[0]
    assert planned.metrics.numFilesRemoved == 4
    [done] = spark.sql("REORG TABLE f WHERE p = 'x' APPLY (PURGE)").collect()
    metrics = done.metrics
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (3, 1)
    assert metrics.deletionVectorStats.numDeletionVectorRowsRemoved == 1
    assert spark.sql("reorg f apply (purge)").collect()[0].metrics.numFilesRemoved == 1
    assert spark.sql(f"REORG TABLE '{path}' APPLY (PURGE)").collect()[0].metrics.numFilesRemoved == 0
    assert rows(spark) == before
    assert spark.sql("DESCRIBE HISTORY f LIMIT 1").collect()[0].operation == "REORG"


def test_what_is_refused(spark: SparkSession, path: str, table: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"UPGRADE UNIFORM.*is not implemented"):
        spark.sql("REORG TABLE f APPLY (UPGRADE UNIFORM(ICEBERG_COMPAT_VERSION = 2))").collect()
    with pytest.raises(InvalidArgumentError, match="columns that are not partition columns"):
        spark.sql("REORG TABLE f WHERE a = 1 APPLY (PURGE)").collect()
    with pytest.raises(InvalidArgumentError, match="'all' is not a level"):
        spark.sql("CALL deltalog.check('f', 'all')").collect()
    for statement in (
        "REORG TABLE f",
        "FSCK REPAIR f",
        "FSCK REPAIR TABLE f METADATA ONLY",
        "REORG TABLE f APPLY PURGE",
    ):
        with pytest.raises(ParseException):
            spark.sql(statement)
    assert DeltaTable(path).version() == 3
