"""An overwrite is based on the version from which its data was read, so later commits are never lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import deltalog
from deltalog.spark.errors import CommitConflictError, InvalidArgumentError, VersionNotFoundError


def ids(path: str) -> list[int]:
    return sorted(deltalake.DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


def read(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("deltalog").load(path)


def overwrite(data: DataFrame, path: str) -> None:
    data.write.format("deltalog").mode("overwrite").save(path)


@pytest.fixture
def table(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates the table `based` with the ids 0 to 2, and returns its path."""
    spark.range(3).write.format("deltalog").option("path", path).saveAsTable("based")
    yield path
    spark.sql("DROP TABLE based")
    for view in ("old_rows", "outer_rows", "global_temp.old_rows"):
        spark.sql(f"DROP VIEW IF EXISTS {view}")


def of_view(spark: SparkSession, path: str) -> DataFrame:
    read(spark, path).createOrReplaceTempView("old_rows")
    spark.sql("CREATE OR REPLACE TEMP VIEW outer_rows AS SELECT id FROM old_rows WHERE id > 0")
    frame = spark.table("outer_rows")
    frame.schema  # noqa: B018 (analyzes the plan)
    return frame


def of_cache(spark: SparkSession, path: str) -> DataFrame:
    frame = read(spark, path).cache()
    assert frame.collect()
    return frame.where("id > 0")


def of_self_join(spark: SparkSession, path: str) -> DataFrame:
    return read(spark, path).alias("a").join(read(spark, path).alias("b"), "id")


# Functions that return a DataFrame. The DataFrame stays at the version of the table that is current at the call.
PLANS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "filter": lambda spark, path: read(spark, path).where("id > 0"),
    "name": lambda spark, path: spark.table("based").where("id > 0"),
    "path in SQL": lambda spark, path: spark.sql(f"SELECT id FROM deltalog.`{path}`"),
    "union": lambda spark, path: spark.range(9).unionByName(read(spark, path)),
    "self join": of_self_join,
    "aggregate": lambda spark, path: read(spark, path).groupBy().count().selectExpr("count AS id"),
    "scalar subquery": lambda spark, path: spark.sql(
        "SELECT (SELECT max(id) FROM based) + id AS id FROM range(2)"
    ),
    "subquery in a filter": lambda spark, path: spark.sql(
        "SELECT id FROM range(9) WHERE id IN (SELECT id FROM based WHERE id < (SELECT max(id) FROM based))"
    ),
    "common table expression": lambda spark, path: spark.sql(
        "WITH a AS (SELECT id FROM based), b AS (SELECT * FROM a) SELECT b.id FROM a JOIN b ON a.id = b.id"
    ),
    "temporary view": of_view,
    "cached": of_cache,
    "another version beside it": lambda spark, path: read(spark, path).unionByName(
        spark.read.format("deltalog").option("versionAsOf", 0).load(path)
    ),
    "link": lambda spark, path: read(spark, link_to(path)),
}


def link_to(path: str) -> str:
    link = Path(path + " link")
    link.symlink_to(path, target_is_directory=True)
    return str(link)


@pytest.mark.parametrize("plan", PLANS)
def test_overwrites_conflict_with_commits_after_the_version_read(
    spark: SparkSession, table: str, plan: str
) -> None:
    old = PLANS[plan](spark, table)
    spark.range(100, 101).write.format("deltalog").mode("append").save(table)
    with pytest.raises(CommitConflictError):
        overwrite(old, table)
    assert ids(table) == [0, 1, 2, 100]
    fresh = PLANS[plan](spark, table) if plan != "link" else read(spark, table)
    wanted = sorted(row.id for row in fresh.collect())
    overwrite(fresh, table)
    assert ids(table) == wanted


def test_every_api_for_overwriting_checks_the_base(spark: SparkSession, table: str) -> None:
    old = read(spark, table).where("id > 0")
    old.createOrReplaceTempView("old_rows")
    spark.range(100, 101).write.format("deltalog").mode("append").save(table)
    for write in (
        lambda: overwrite(old, table),
        lambda: old.write.format("deltalog").mode("overwrite").saveAsTable("based"),
        lambda: old.write.insertInto("based", overwrite=True),
        lambda: spark.sql("INSERT OVERWRITE based SELECT * FROM old_rows"),
        lambda: spark.sql(f"INSERT OVERWRITE deltalog.`{table}` SELECT * FROM old_rows"),
        lambda: spark.sql("WITH a AS (SELECT * FROM old_rows) INSERT OVERWRITE based SELECT * FROM a"),
    ):
        with pytest.raises(CommitConflictError):
            write()
        assert ids(table) == [0, 1, 2, 100]
    old.write.format("deltalog").mode("append").save(table)
    assert ids(table) == [0, 1, 1, 2, 2, 100]
    spark.sql("WITH a AS (SELECT * FROM based) INSERT OVERWRITE based SELECT * FROM a WHERE id > 1")
    assert ids(table) == [2, 2, 100]


def test_the_oldest_version_in_the_plan_is_the_base(spark: SparkSession, table: str) -> None:
    old = read(spark, table)
    spark.range(100, 101).write.format("deltalog").mode("append").save(table)
    both = read(spark, table).unionByName(old)
    with pytest.raises(CommitConflictError):
        overwrite(both, table)
    assert ids(table) == [0, 1, 2, 100]


def test_other_tables_and_explicit_versions_are_not_the_base(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    """Reading other tables, or an explicitly requested version, does not determine the base of an overwrite. A user
    who overwrites a table with one of its older versions wants to go back to it.
    """
    other = str(tmp_path / "other")
    spark.range(7, 8).write.format("deltalog").save(other)
    rows = read(spark, other)
    for target in (table, other):
        spark.range(100, 101).write.format("deltalog").mode("append").save(target)
    overwrite(rows, table)
    assert ids(table) == [7]
    overwrite(spark.read.format("deltalog").option("versionAsOf", 0).load(table), table)
    assert ids(table) == [0, 1, 2]
    spark.sql("INSERT OVERWRITE based SELECT * FROM based VERSION AS OF 1")
    assert ids(table) == [0, 1, 2, 100]


def test_overwrites_conflict_with_a_recreated_table(spark: SparkSession, table: str, tmp_path: Path) -> None:
    old = read(spark, table)
    Path(table).rename(tmp_path / "moved away")
    spark.range(50, 52).write.format("deltalog").save(table)
    with pytest.raises(CommitConflictError, match="created again") as caught:
        overwrite(old, table)
    assert (caught.value.reason, caught.value.version) == ("table_replaced", None)
    assert ids(table) == [50, 51]
    Path(table).rename(tmp_path / "moved away, too")
    with pytest.raises(CommitConflictError, match="dropped") as caught:
        overwrite(old, table)
    assert (caught.value.reason, caught.value.version) == ("table_replaced", None)


def test_overwrites_conflict_if_their_version_was_cleaned_up(spark: SparkSession, table: str) -> None:
    old = read(spark, table)
    spark.range(100, 101).write.format("deltalog").mode("append").save(table)
    deltalake.DeltaTable(table).create_checkpoint()
    Path(table, "_delta_log", f"{0:020}.json").unlink()
    with pytest.raises(CommitConflictError, match=r"version 0 .* no longer exists") as caught:
        overwrite(old, table)
    assert (caught.value.reason, caught.value.version) == ("log_cleaned_up", None)
    assert ids(table) == [0, 1, 2, 100]


def test_the_id_of_a_table_may_be_any_text(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "a#table@7#x")
    deltalake.write_deltalake(path, pa.table({"id": [0, 1]}))
    log = Path(path, "_delta_log", f"{0:020}.json")
    log.write_text(log.read_text().replace(str(deltalake.DeltaTable(path).metadata().id), 'a@1#b\\"@2'))
    old = read(spark, path).where("id > 0")
    deltalake.write_deltalake(path, pa.table({"id": [100]}), mode="append")
    with pytest.raises(CommitConflictError):
        overwrite(old, path)
    overwrite(read(spark, path).where("id > 0"), path)
    assert ids(path) == [1, 100]


@pytest.mark.usefixtures("answers_from_log")
@pytest.mark.parametrize("how", ["cached", "answered from the log"])
def test_a_dynamic_overwrite_is_based_on_what_its_rows_were_read_from(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    """A dynamic overwrite is based on the version from which its rows were read, even if rows are cached or an answer
    comes from the log alone.
    """
    path = str(tmp_path / "t")
    data = spark.createDataFrame([(1, 1), (2, 2)], "id long, p long")
    data.write.format("deltalog").partitionBy("p").save(path)
    table = f"deltalog.`{path}`"
    rows = spark.table(table).groupBy("p").agg(sf.max("id").alias("id")).select("id", "p")
    if how == "cached":
        rows = spark.table(table).where("p = 1").cache()
    try:
        rows.count()
        spark.createDataFrame([(3, 1)], "id long, p long").write.format("deltalog").mode("append").save(path)
        with pytest.raises(CommitConflictError):
            rows.writeTo(table).overwritePartitions()
    finally:
        rows.unpersist()
    assert ids(path) == [1, 2, 3]


def test_the_option_names_the_base(spark: SparkSession, table: str) -> None:
    """The option `baseVersion` has precedence over the version in the plan. For writes to which it does not apply, it
    is an error.
    """
    old = read(spark, table).where("id > 0")
    spark.range(100, 101).write.format("deltalog").mode("append").save(table)
    new = spark.range(7, 8).write.format("deltalog").mode("overwrite")
    with pytest.raises(CommitConflictError) as caught:
        new.option("baseVersion", 0).save(table)
    assert (caught.value.reason, caught.value.version) == ("concurrent_append", 1)
    with pytest.raises(VersionNotFoundError):
        new.option("baseVersion", 2).save(table)
    with pytest.raises(InvalidArgumentError, match="baseVersion must be"):
        new.option("baseVersion", "oldest").save(table)
    with pytest.raises(InvalidArgumentError, match="baseVersion needs the mode overwrite"):
        old.write.format("deltalog").mode("append").option("baseVersion", 1).save(table)
    assert ids(table) == [0, 1, 2, 100]
    new.option("baseVersion", 1).save(table)
    assert ids(table) == [7]
    old.write.format("deltalog").mode("overwrite").option("baseVersion", "Newest").save(table)
    assert ids(table) == [1, 2]


def test_the_option_is_not_kept_for_later_writes(spark: SparkSession, table: str) -> None:
    spark.sql("DROP TABLE based")
    writer = spark.range(3).write.format("deltalog").mode("overwrite").option("path", table)
    writer.option("baseVersion", "newest").saveAsTable("based")
    old = spark.table("based").where("id > 0")
    spark.sql("INSERT INTO based VALUES (100)")
    with pytest.raises(CommitConflictError):
        old.write.insertInto("based", overwrite=True)
    assert ids(table) == [0, 1, 2, 100]
    with pytest.raises(InvalidArgumentError, match="baseVersion needs the mode overwrite"):
        spark.sql("CREATE TABLE other (id BIGINT) USING deltalog OPTIONS (baseVersion 'newest')")


def test_concurrent_appends_survive_overwrites(spark: SparkSession, table: str) -> None:
    """Appends and overwrites run at the same time. Each write is either in the table, or has failed with an error."""
    start = Barrier(3)

    def append(first: int) -> None:
        start.wait()
        for number in range(first, first + 4):
            spark.range(number, number + 1).write.format("deltalog").mode("append").save(table)

    def rewrite() -> int:
        start.wait()
        done = 0
        for _ in range(4):
            try:
                overwrite(read(spark, table).selectExpr("id"), table)
                done += 1
            except CommitConflictError:
                continue
        return done

    with ThreadPoolExecutor(3) as pool:
        appends = [pool.submit(append, first) for first in (10, 20)]
        overwrites = pool.submit(rewrite)
        for future in appends:
            future.result()
    assert ids(table) == [0, 1, 2, 10, 11, 12, 13, 20, 21, 22, 23]
    assert deltalog.DeltaTable(table).version() == 8 + overwrites.result()
