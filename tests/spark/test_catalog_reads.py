"""Queries on catalog tables are planned as scans of Spark's own kind, so that its optimizer works as usual."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import deltalog.tables
from deltalog import InvalidArgumentError, VersionNotFoundError
from tests.spark.conftest import EXCLUDED_RULES

ROWS = 1000


@pytest.fixture(scope="module")
def read_tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Creates the tables `r` (with four partitions) and `small`, and Parquet files with the rows of `r`. Returns the
    path of the files.
    """
    path = str(tmp_path_factory.mktemp("plain") / "files")
    frame = spark.range(0, ROWS, 1, 2).select(
        "id",
        (sf.col("id") % 10).cast("double").alias("d"),
        sf.struct((sf.col("id") % 7).alias("x"), sf.lit("y").alias("y")).alias("s"),
        (sf.col("id") % 4).cast("int").alias("p"),
    )
    frame.write.parquet(path)
    frame.write.format("deltalog").partitionBy("p").saveAsTable("r")
    spark.sql(
        "CREATE TABLE small USING deltalog AS SELECT id AS k, CAST(id + 1 AS INT) AS part FROM range(2)"
    )
    yield path
    spark.sql("DROP TABLE r")
    spark.sql("DROP TABLE small")


pytestmark = pytest.mark.usefixtures("read_tables")


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


QUERIES = [
    "SELECT sum(d), count(s.x) FROM {r} WHERE p = 2 AND d < 5",
    "SELECT s.x, max(s) FROM {r} GROUP BY s.x",
    "SELECT count(*) FROM {r}",
    "SELECT count(*) FROM {r} a JOIN {r} b ON a.id = b.id + 1 AND a.p = 1",
    "WITH q AS (SELECT p, sum(d) AS t FROM {r} GROUP BY p) SELECT * FROM q WHERE t > (SELECT min(t) FROM q)",
    "SELECT id FROM {r} a WHERE EXISTS (SELECT 1 FROM {r} b WHERE b.p = 3 AND b.id = a.id + 1) AND id < 50",
    "SELECT p, count(DISTINCT _metadata.file_path) > 0, max(_metadata.row_index) >= 0 FROM {r} GROUP BY p",
    "SELECT R.ID, r.P FROM {r} r WHERE r.S.X = 3 ORDER BY Id LIMIT 7",
]


@pytest.mark.parametrize("query", QUERIES)
def test_rows_equal_the_rows_of_sparks_own_read(spark: SparkSession, read_tables: str, query: str) -> None:
    ours = spark.sql(query.format(r="r"))
    assert sorted(ours.collect()) == sorted(spark.sql(query.format(r=f"parquet.`{read_tables}`")).collect())
    assert "BatchScan" not in plan(ours)


def test_the_plan_is_that_of_a_scan_of_files(spark: SparkSession) -> None:
    text = plan(spark.sql("SELECT sum(d) FROM r WHERE p = 2 AND d < 5"))
    assert "FileScan parquet" in text
    assert "1 of 4 files" in text or "of 8 files" in text
    assert "PartitionFilters: [isnotnull(p" in text
    assert "LessThan(d,5.0)" in text
    assert "ReadSchema: struct<d:double>" in text
    assert "ReadSchema: struct<s:struct<x:bigint>>" in plan(spark.sql("SELECT sum(s.x) FROM r"))


def test_partitions_are_pruned_by_a_join(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT /*+ BROADCAST(small) */ count(*), min(p), max(p) FROM r JOIN small ON r.p = small.part WHERE k = 1"
    )
    assert [tuple(row) for row in frame.collect()] == [(ROWS // 4, 2, 2)]
    assert "dynamicpruning" in plan(frame)


def test_equal_scans_are_exchanged_once(spark: SparkSession) -> None:
    one = "(SELECT d, count(*) AS c FROM r GROUP BY d)"
    frame = spark.sql(f"SELECT count(*) FROM {one} a JOIN {one} b ON a.d = b.d")
    assert frame.collect()[0][0] == 10
    assert "ReusedExchange" in plan(frame)
    assert "isFinalPlan=true" in plan(frame)


def test_small_tables_are_broadcast_by_their_size(spark: SparkSession) -> None:
    frame = spark.sql("SELECT count(*) FROM r JOIN small ON r.id = small.k")
    assert "BroadcastHashJoin" in str(frame._jdf.queryExecution().sparkPlan().toString())
    assert frame.collect()[0][0] == 2


@pytest.fixture
def changing(spark: SparkSession) -> Iterator[str]:
    properties = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"CREATE TABLE c USING deltalog {properties} AS SELECT 1 AS a")
    yield "c"
    spark.sql("UNCACHE TABLE IF EXISTS c")
    spark.sql("DROP TABLE IF EXISTS c")


def test_a_data_frame_stays_on_its_version(spark: SparkSession, changing: str) -> None:
    """A DataFrame, and every frame that is derived from it, stays on its version. Each use of the table's name in a
    new query reads the newest version.
    """
    frame = spark.table(changing)
    spark.sql("INSERT INTO c VALUES (2)")
    assert (frame.count(), frame.where("a > 0").count(), spark.table(changing).count()) == (1, 1, 2)
    assert spark.read.option("versionAsOf", 0).table(changing).count() == 1
    assert spark.sql("SELECT (SELECT count(*) FROM c VERSION AS OF 0), (SELECT count(*) FROM c)").first() == (
        1,
        2,
    )


def test_cached_tables_show_what_is_written(spark: SparkSession, changing: str) -> None:
    spark.sql("CACHE TABLE c")
    assert "InMemory" in plan(spark.sql("SELECT * FROM c"))
    spark.sql("INSERT INTO c VALUES (2)")
    assert sorted(spark.sql("SELECT a FROM c").collect()) == [(1,), (2,)]
    if not spark.version.startswith("4.0."):
        assert "InMemory" in plan(spark.sql("SELECT * FROM c"))


def test_views_show_the_newest_version(spark: SparkSession, changing: str) -> None:
    spark.sql("CREATE OR REPLACE TEMP VIEW tv AS SELECT * FROM c")
    spark.sql("CREATE OR REPLACE VIEW pv AS SELECT * FROM c")
    try:
        spark.sql("INSERT INTO c VALUES (2)")
        assert (spark.table("tv").count(), spark.table("pv").count()) == (2, 2)
    finally:
        spark.sql("DROP VIEW pv")
        spark.catalog.dropTempView("tv")


@pytest.mark.parametrize("table", ["by name", "by path"])
def test_the_files_that_a_filter_leaves_decide_how_tables_are_joined(
    spark: SparkSession, tmp_path: Path, table: str
) -> None:
    """The size of the files that a filter leaves decides how tables are joined. With the size of the whole table,
    Spark would shuffle both sides.
    """
    path = str(tmp_path / "large")
    frame = spark.range(0, 40_000, 1, 4).selectExpr("id", "uuid() AS s", "id % 4 AS p")
    frame.repartitionByRange(8, "id").write.format("deltalog").save(path)
    read = (
        spark.table(f"deltalog.`{path}`") if table == "by name" else spark.read.format("deltalog").load(path)
    )
    size_of_all = sum(file.stat().st_size for file in Path(path).glob("*.parquet"))
    few = read.where("id < 100")

    def size(frame: DataFrame) -> int:
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert size(read) >= size_of_all * 0.9
    assert size_of_all / 16 < size(few) < size_of_all / 4
    rules = str(spark.conf.get(EXCLUDED_RULES))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(size_of_all // 3))
    try:
        other = read.alias("o").selectExpr("id + 1 AS other")
        assert "BroadcastHashJoin" in plan(few.join(other, few.id == other.other))
        assert few.join(other, few.id == other.other).count() == 99
        # Spark still shuffles if no file is skipped, or if the optimizer rule is turned off.
        assert "SortMergeJoin" in plan(read.where("length(s) > 0").join(other, read.id == other.other))
        spark.conf.set(EXCLUDED_RULES, f"{rules},io.deltalog.spark.PrunedSizes")
        assert "SortMergeJoin" in plan(few.where("id < 50").join(other, few.id == other.other))
    finally:
        spark.conf.set(EXCLUDED_RULES, rules)
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_options_of_a_query_by_name(spark: SparkSession, changing: str, tmp_path: Path) -> None:
    assert spark.read.option("allowedRoots", str(tmp_path)).table(changing).count() == 1
    assert spark.read.option("versionAsOf", 0).table(changing).count() == 1
    with pytest.raises(VersionNotFoundError, match="2020-01-01"):
        spark.read.option("timestampAsOf", "2020-01-01").table(changing)
    with pytest.raises(InvalidArgumentError, match="set readChangeFeed to true"):
        spark.read.option("startingVersion", 0).table(changing).collect()


def feed(spark: SparkSession, name: str, **options: Any) -> DataFrame:
    return spark.read.option("readChangeFeed", "true").options(**options).table(name)


def test_the_change_data_feed_is_read_by_name(spark: SparkSession, changing: str) -> None:
    spark.sql("INSERT INTO c VALUES (2)")
    columns = ["a", "_change_type", "_commit_version", "_commit_timestamp"]
    [path] = {row.location for row in spark.sql("DESCRIBE DETAIL c").collect()}
    by_path = spark.read.option("readChangeFeed", "true").option("startingVersion", 0)
    wanted = sorted(by_path.format("deltalog").load(path).collect())
    assert [row.a for row in wanted] == [1, 2]
    for name in ("c", "default.c", "spark_catalog.default.c", f"deltalog.`{path}`"):
        found = feed(spark, name, startingVersion=0)
        assert (found.columns, sorted(found.collect())) == (columns, wanted), name
    assert feed(spark, "c", startingVersion=0).select("c.a", "default.c._commit_version").count() == 2
    assert feed(spark, "c", startingVersion=1).where("_change_type = 'insert'").select("a").collect() == [
        (2,)
    ]
    assert feed(spark, "c", startingVersion=0, endingVersion=0).select("a").collect() == [(1,)]
    assert spark.read.option("readChangeFeed", "false").table("c").columns == ["a"]
    for options, problem in {
        (): "requires startingVersion",
        (("startingVersion", 0), ("versionAsOf", 0)): "cannot be used with readChangeFeed",
        (("startingVersion", 0), ("startingTimestamp", "2020-01-01")): "cannot be used together",
    }.items():
        with pytest.raises(InvalidArgumentError, match=problem):
            feed(spark, "c", **dict(options))


def test_the_change_data_feed_in_sql(spark: SparkSession, changing: str) -> None:
    spark.sql("INSERT INTO c VALUES (2)")
    changes = "c WITH ('readChangeFeed' = 'true', 'startingVersion' = '1')"
    for query in (
        f"SELECT a, _change_type FROM {changes} AS f WHERE f._commit_version = 1",
        f"WITH q AS (SELECT * FROM {changes}) SELECT q.a, _change_type FROM q JOIN c ON c.a = q.a",
        f"SELECT a, 'insert' FROM c WHERE a IN (SELECT a FROM {changes})",
        f"SELECT (SELECT max(a) FROM {changes}), 'insert'",
    ):
        assert spark.sql(query).collect() == [(2, "insert")], query
    spark.sql(f"INSERT INTO c SELECT a + 1 FROM {changes}")
    spark.sql(f"DELETE FROM c WHERE a IN (SELECT a FROM {changes} WHERE _commit_version = 1)")
    assert sorted(spark.table("c").collect()) == [(1,), (3,)]


def test_a_view_of_a_change_data_feed_keeps_to_its_database(spark: SparkSession, changing: str) -> None:
    spark.sql("INSERT INTO c VALUES (2)")
    query = "SELECT a, _change_type FROM c WITH ('readChangeFeed' = 'true', 'startingVersion' = '1')"
    spark.sql(f"CREATE VIEW feed_v AS {query}")
    spark.sql("CREATE DATABASE other_db")
    try:
        spark.sql("USE other_db")
        assert spark.table("default.feed_v").collect() == [(2, "insert")]
        spark.sql(
            "CREATE TABLE c USING deltalog TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') AS SELECT 7 AS a"
        )
        spark.sql("INSERT INTO c VALUES (8)")
        assert spark.table("default.feed_v").collect() == [(2, "insert")]
        assert spark.sql(query).collect() == [(8, "insert")]
        # A temporary view hides a table with the same name, except in views that were created earlier.
        spark.sql("CREATE TEMP VIEW c AS SELECT 1 AS a")
        assert spark.table("default.feed_v").collect() == [(2, "insert")]
        with pytest.raises(Exception, match="it is a view"):
            spark.sql(query)
    finally:
        spark.sql("USE default")
        spark.catalog.dropTempView("c")
        spark.sql("DROP DATABASE other_db CASCADE")
        spark.sql("DROP VIEW feed_v")


def test_only_deltalog_tables_have_a_change_data_feed(spark: SparkSession, changing: str) -> None:
    spark.sql("CREATE VIEW pv AS SELECT * FROM c")
    spark.sql("CREATE OR REPLACE TEMP VIEW tv AS SELECT * FROM c")
    spark.sql("CREATE TABLE parquet_f USING parquet AS SELECT 1 AS a")
    try:
        for view in ("pv", "default.pv", "tv"):
            with pytest.raises(InvalidArgumentError, match=f"{view} is not a Delta table: it is a view"):
                feed(spark, view, startingVersion=0)
        assert feed(spark, "parquet_f", startingVersion=0).columns == ["a"]
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            feed(spark, "nothing", startingVersion=0)
    finally:
        spark.sql("DROP TABLE parquet_f")
        spark.sql("DROP VIEW pv")
        spark.catalog.dropTempView("tv")


def test_other_tables_in_the_same_session(spark: SparkSession, tmp_path: Path) -> None:
    """The session catalog itself handles all tables of other formats."""
    names = ("parquet_o", "parquet_l", "json_o")
    try:
        spark.sql("CREATE TABLE parquet_o USING parquet AS SELECT 1 AS a")
        spark.sql("INSERT INTO parquet_o VALUES (2)")
        spark.sql("ALTER TABLE parquet_o ADD COLUMNS (b INT)")
        spark.sql("CREATE TABLE parquet_l LIKE parquet_o")
        spark.range(1).selectExpr("3 AS a", "4 AS b").write.mode("append").saveAsTable("parquet_o")
        spark.range(1).selectExpr("5 AS a", "6 AS b").write.insertInto("parquet_l")
        spark.range(1).write.format("json").saveAsTable("json_o")
        spark.range(2).write.format("json").mode("overwrite").saveAsTable("json_o")
        assert spark.table("parquet_o").count() == 3
        assert spark.table("parquet_l").collect() == [(5, 6)]
        assert spark.table("json_o").count() == 2
        with pytest.raises(PySparkException, match=r"(?i)not support"):
            spark.sql("CREATE OR REPLACE TABLE parquet_o USING parquet AS SELECT 1 AS a")
        assert spark.table("parquet_o").count() == 3
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.table("nothing_o")
    finally:
        for name in names:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_tables_of_python_data_sources(spark: SparkSession) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Ones(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ones"

        def schema(self) -> str:
            return "a int"

        def reader(self, schema: Any) -> DataSourceReader:
            return OnesReader()

    class OnesReader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield (1,)

    spark.dataSource.register(Ones)
    spark.sql("CREATE TABLE ones_t USING ones")
    try:
        assert spark.table("ones_t").collect() == [(1,)]
    finally:
        spark.sql("DROP TABLE ones_t")


def test_create_table_as_select_of_another_v2_source(spark: SparkSession, tmp_path: Path) -> None:
    """The table of the other source is created first, then filled, and dropped if that fails."""
    from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage

    class Sums(DataSource):
        @classmethod
        def name(cls) -> str:
            return "sums"

        def schema(self) -> str:
            return "a bigint"

        def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
            return SumsWriter()

    directory = str(tmp_path)

    class SumsWriter(DataSourceWriter):
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            Path(directory, str(uuid.uuid4())).write_text(str(sum(row[0] for row in iterator)))
            return WriterCommitMessage()

    spark.dataSource.register(Sums)
    create = "CREATE TABLE sums_t USING sums AS SELECT"
    try:
        with pytest.raises(Exception, match="boom"):
            spark.sql(f"{create} CAST(raise_error('boom') AS BIGINT) AS a")
        assert not spark.catalog.tableExists("sums_t")
        spark.sql(f"{create} id AS a FROM range(10)")
        assert spark.catalog.tableExists("sums_t")
        assert sum(int(file.read_text()) for file in tmp_path.iterdir()) == 45
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            spark.sql(f"{create} id AS a FROM range(10)")
    finally:
        spark.sql("DROP TABLE IF EXISTS sums_t")


@pytest.mark.parametrize("cached", ["c", "deltalog.`{path}`"], ids=["name", "path"])
def test_cached_tables_show_what_this_session_writes_by_another_name(
    spark: SparkSession, changing: str, cached: str
) -> None:
    [location] = [row.location for row in spark.sql("DESCRIBE DETAIL c").collect()]
    path = location.removeprefix("file://")
    other = f"deltalog.`{path}`" if cached == "c" else "c"
    cached = cached.format(path=path)
    spark.sql(f"CACHE TABLE {cached}")
    rows = {1}
    table = deltalog.tables.DeltaTable.forPath(spark, path)
    writes: list[Callable[[int], object]] = [
        lambda a: spark.sql(f"SELECT {a} AS a").write.format("deltalog").mode("append").save(path),
        lambda a: spark.sql(f"INSERT INTO {other} VALUES ({a})"),
        lambda a: spark.sql(f"SELECT {a} AS a").writeTo(other).append(),
        lambda a: table.update(f"a = {a - 1}", {"a": f"{a}"}),
        lambda a: spark.sql(f"UPDATE {other} SET a = {a} WHERE a = {a - 1}"),
    ]
    try:
        for a, write in enumerate(writes, 10):
            write(a)
            rows = {*rows, a} - ({a - 1} if a > 12 else set())
            assert {row.a for row in spark.table(cached).collect()} == rows
        table.restoreToVersion(0)
        assert spark.table(cached).collect() == [(1,)]
        spark.sql(f"ALTER TABLE {other} ADD COLUMN b INT")
        assert spark.table(cached).collect() == [(1, None)]
        if not spark.version.startswith("4.0."):
            assert "InMemory" in plan(spark.table(cached))
        spark.sql(f"TRUNCATE TABLE {other}")
        assert spark.table(cached).collect() == []
    finally:
        spark.catalog.clearCache()
