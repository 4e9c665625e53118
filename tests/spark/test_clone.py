"""CLONE on Spark by SQL statement, procedure and Python method, with the same names as in the JVM connector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import deltalog
from deltalog import InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError
from deltalog.tables import DeltaTable

pytestmark = pytest.mark.newest


@pytest.fixture
def source(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates a table with deletion vectors at `path`, and returns its name."""
    spark.sql(
        f"CREATE TABLE src (a INT, p STRING) USING deltalog PARTITIONED BY (p) LOCATION '{path}' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'mine' = 'x')"
    )
    spark.sql("INSERT INTO src VALUES (1, 'x y'), (2, 'x y'), (3, 'z'), (4, 'z')")
    spark.sql("DELETE FROM src WHERE a = 2")
    yield "src"
    for name in ("src", "deep", "low", "placed"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def rows(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.a for row in spark.table(name).collect())


def test_a_statement_makes_a_copy_with_a_name(spark: SparkSession, source: str, tmp_path: Path) -> None:
    at = tmp_path / "deep"
    call = f"CALL deltalog.clone('src', 'deep', shallow => false, location => '{at}', dry_run => true)"
    [planned] = spark.sql(call).collect()
    assert (planned.num_copied_files, at.exists(), spark.catalog.tableExists("deep")) == (2, False, False)
    [done] = spark.sql(
        f"CREATE TABLE deep DEEP CLONE src TBLPROPERTIES ('mine' = 'y', other.name = 'z') LOCATION '{at}'"
    ).collect()
    assert (done.source_num_of_files, done.num_copied_files, done.num_removed_files) == (2, 2, 0)
    assert rows(spark, "deep") == [1, 3, 4]
    table = deltalog.DeltaTable(at)
    assert table.metadata().configuration["mine"] == "y"
    assert table.metadata().configuration["other.name"] == "z"
    assert table.history()[0]["operation"] == "CLONE"
    with pytest.raises(TableAlreadyExistsError, match="there is a table deep already"):
        spark.sql("CREATE TABLE deep DEEP CLONE src")
    assert spark.sql("CREATE TABLE IF NOT EXISTS deep DEEP CLONE src").collect()[0].num_copied_files == 0
    # Cloning again only copies new files.
    spark.sql("INSERT INTO src VALUES (5, 'z')")
    [done] = spark.sql("CREATE OR REPLACE TABLE deep DEEP CLONE src").collect()
    assert (done.num_copied_files, rows(spark, "deep")) == (1, [1, 3, 4, 5])
    spark.sql("CREATE OR REPLACE TABLE deep DEEP CLONE src VERSION AS OF 1")
    assert rows(spark, "deep") == [1, 2, 3, 4]
    assert (
        "Call spark_catalog.deltalog.clone"
        in spark.sql("EXPLAIN CREATE TABLE e DEEP CLONE src").collect()[0][0]
    )


def test_a_clone_without_a_location_is_managed(spark: SparkSession, source: str) -> None:
    """Without a location, the clone is a managed table. It is in the current database, unless its name includes a
    database.
    """
    for name in ("deep", "default.deep"):
        spark.sql(f"CREATE TABLE {name} DEEP CLONE src")
        found = {row.col_name: row.data_type for row in spark.sql("DESCRIBE EXTENDED deep").collect()}
        assert found["Type"] == "MANAGED"
        place = Path(found["Location"].removeprefix("file:"))
        assert (place / "_delta_log").is_dir()
        spark.sql(f"DROP TABLE {name}")
        assert not place.exists()


def test_a_shallow_clone_is_read_by_its_name(
    spark: SparkSession, source: str, path: str, tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE low SHALLOW CLONE src")
    assert rows(spark, "low") == [1, 3, 4]
    spark.sql("DELETE FROM low WHERE a = 3")
    assert (rows(spark, "low"), rows(spark, "src")) == ([1, 4], [1, 3, 4])
    at = tmp_path / "at"
    spark.sql(f"CREATE TABLE deltalog.`{at}` SHALLOW CLONE deltalog.`{path}`")
    found = spark.read.format("deltalog").option("allowedRoots", path).load(str(at))
    assert sorted(row.a for row in found.collect()) == [1, 3, 4]
    assert deltalog.DeltaTable(at).history()[0]["operationParameters"]["isShallow"] is True


def test_verbs_change_a_shallow_clone(spark: SparkSession, source: str, path: str, tmp_path: Path) -> None:
    """Methods work on a shallow clone that is opened by its name, because the catalog entry contains the roots of its
    files. They also work on one that is opened by its path with these roots, and on the object that `clone` returns.
    """
    spark.sql("CREATE TABLE low SHALLOW CLONE src")
    by_name = DeltaTable.forName(spark, "low")
    by_name.delete("a = 4")
    assert rows(spark, "low") == [1, 3]
    assert by_name.optimize().executeCompaction().collect()[0].metrics.numFilesAdded == 2
    assert rows(spark, "low") == [1, 3]
    assert by_name.check("rows").count() == 0
    assert "allowedRoots" in spark.sql("SHOW CREATE TABLE low").collect()[0][0]
    at = str(tmp_path / "at")
    made = DeltaTable.forPath(spark, path).clone(at, isShallow=True)
    assert made.check("rows").count() == 0
    made.update("a = 1", {"a": "10"})
    with pytest.raises(UnsupportedFeatureError, match="allowed_roots"):
        DeltaTable.forPath(spark, at).check("rows")
    by_path = DeltaTable.forPath(spark, at, {"allowedRoots": path})
    assert by_path.check("rows").count() == 0
    assert sorted(row.a for row in by_path.toDF().collect()) == [3, 4, 10]
    with pytest.raises(InvalidArgumentError, match="allowedRoots"):
        DeltaTable.forPath(spark, at, {"root": path})
    assert rows(spark, "src") == [1, 3, 4]


def test_a_clone_replaces_a_table_of_the_catalog_where_it_is(
    spark: SparkSession, source: str, path: str, tmp_path: Path
) -> None:
    """A deep clone can replace a catalog table at its location, which may be spelled in different ways. A shallow clone
    is refused, because it could not be read by the table's name.
    """
    at = tmp_path / "an other"
    spark.sql(f"CREATE TABLE placed DEEP CLONE src VERSION AS OF 1 LOCATION '{at}'")
    with pytest.raises(UnsupportedFeatureError, match="drop the table first, or make a deep clone"):
        spark.sql("CREATE OR REPLACE TABLE placed SHALLOW CLONE src")
    assert rows(spark, "placed") == [1, 2, 3, 4]
    with pytest.raises(InvalidArgumentError, match=r"the table placed is at .*an%20other, not at"):
        spark.sql(f"CREATE OR REPLACE TABLE placed DEEP CLONE src LOCATION '{tmp_path}/else'")
    spark.sql(f"CREATE OR REPLACE TABLE placed DEEP CLONE src LOCATION 'file:{at}'")
    assert rows(spark, "placed") == [1, 3, 4]


def test_cached_rows_are_computed_again(spark: SparkSession, source: str) -> None:
    """Cached rows of a table are computed again after a clone has replaced the table, and after a RESTORE."""
    spark.sql("CREATE TABLE deep DEEP CLONE src VERSION AS OF 1")
    try:
        for name in ("src", "deep"):
            assert spark.table(name).cache().count() in (3, 4)
        spark.sql("CREATE OR REPLACE TABLE deep DEEP CLONE src")
        assert rows(spark, "deep") == [1, 3, 4]
        spark.sql("RESTORE TABLE src TO VERSION AS OF 1")
        assert rows(spark, "src") == [1, 2, 3, 4]
        DeltaTable.forName(spark, "src").clone("deep", replace=True)
        assert rows(spark, "deep") == [1, 2, 3, 4]
        table = DeltaTable.forName(spark, "deep")
        table.delete("a = 1")
        assert rows(spark, "deep") == [2, 3, 4]
        table.update("a = 2", {"a": "20"})
        assert rows(spark, "deep") == [3, 4, 20]
        one = spark.createDataFrame([(3, "z")], "a int, p string").alias("s")
        table.alias("t").merge(one, "t.a = s.a").whenMatchedDelete().execute()
        assert rows(spark, "deep") == [4, 20]
        table.restoreToVersion(0)
        assert rows(spark, "deep") == [1, 2, 3, 4]
        assert all(spark.catalog.isCached(name) for name in ("src", "deep"))
    finally:
        spark.catalog.clearCache()


def test_a_database_that_does_not_exist_is_found_before_files_are_copied(
    spark: SparkSession, source: str, path: str, tmp_path: Path
) -> None:
    with pytest.raises(AnalysisException, match="nowhere"):
        spark.sql(f"CREATE TABLE nowhere.t DEEP CLONE src LOCATION '{tmp_path}/t'")
    assert not (tmp_path / "t").exists()


def test_verbs_return_the_clone(spark: SparkSession, source: str, path: str, tmp_path: Path) -> None:
    table = DeltaTable.forName(spark, "src")
    copy = table.clone(str(tmp_path / "a"), properties={"mine": "y"})
    assert sorted(row.a for row in copy.toDF().collect()) == [1, 3, 4]
    assert deltalog.DeltaTable(tmp_path / "a").metadata().configuration["mine"] == "y"
    old = table.cloneAtVersion(1, str(tmp_path / "a"), isShallow=True, replace=True)
    assert sorted(row.a for row in old.toDF().collect()) == [1, 2, 3, 4]
    newest = deltalog.DeltaTable(path).history()[0]["timestamp"] / 1000
    time = spark.sql(f"SELECT CAST(timestamp_seconds({newest}) AS STRING) AS t").collect()[0].t
    then = table.cloneAtTimestamp(time, str(tmp_path / "b"))
    assert sorted(row.a for row in then.toDF().collect()) == [1, 3, 4]


def test_what_cannot_be_cloned(spark: SparkSession, source: str, path: str, tmp_path: Path) -> None:
    for statement, text in [
        (f"CREATE OR REPLACE TABLE deltalog.`{path}` DEEP CLONE src", "cannot be cloned onto itself"),
        (f"CREATE TABLE deltalog.`{path}/in` DEEP CLONE src", "inside of each other"),
        (f"CREATE TABLE deltalog.`{tmp_path}/x` DEEP CLONE src LOCATION '/tmp/y'", "has a location as well"),
        ("CALL deltalog.clone('src', '/tmp/x', mode => 'append')", "the mode of a clone is one of"),
        ("CALL deltalog.clone('src', '/tmp/x', properties => '[1]')", "a JSON object of texts"),
    ]:
        with pytest.raises(InvalidArgumentError, match=text):
            spark.sql(statement)
    with pytest.raises(InvalidArgumentError, match="the version must be a whole number"):
        DeltaTable.forName(spark, "src").cloneAtVersion("1", str(tmp_path / "x"))  # type: ignore[arg-type]
    for statement in (
        "CREATE TABLE x CLONE src",
        "CREATE TABLE x DEEP CLONE",
        "CREATE OR REPLACE TABLE IF NOT EXISTS x DEEP CLONE src",
        "CREATE TABLE x DEEP CLONE src TBLPROPERTIES ('a')",
    ):
        with pytest.raises(ParseException):
            spark.sql(statement)
