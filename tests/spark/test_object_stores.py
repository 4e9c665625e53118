"""For tables in object stores, the core reads the log and commits to it, and Spark's tasks read and write the data
files.
"""

from __future__ import annotations

import base64
import itertools
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from deltalog import (
    DeltaTable,
    InvalidArgumentError,
    MissingFileError,
    NotATableError,
    UnsupportedFeatureError,
    write_deltalake,
)
from deltalog.spark.location import Location
from deltalog.spark.read import relation
from deltalog.spark.read.planner import Planner
from deltalog.spark.sql.division import MIN_SIZE
from deltalog.tables import DeltaTable as SparkTable
from tests.conftest import missing
from tests.golden.expected import ROOT
from tests.spark.conftest import hadoop_aws
from tests.spark.processes import run_python
from tests.spark.statement_tables import in_one_task
from tests.spark.test_golden import TABLES, outcome
from tests.stores.s3_server import S3Server, rule

pytestmark = pytest.mark.newest

BUCKET = "tables"
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def running_s3(spark: SparkSession) -> Iterator[S3Server]:
    assert hadoop_aws(), "fetch Hadoop's connector: make .cache/hadoop-aws/.complete"
    with S3Server() as server:
        options = server.options()
        settings = {
            "fs.s3a.endpoint": options["aws_endpoint_url"],
            "fs.s3a.endpoint.region": options["aws_region"],
            "fs.s3a.access.key": options["aws_access_key_id"],
            "fs.s3a.secret.key": options["aws_secret_access_key"],
            # Hadoop must not retry a failed request for minutes.
            "fs.s3a.attempts.maximum": "2",
            "fs.s3a.retry.limit": "2",
        }
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield server
        for name in settings:
            spark.conf.unset(name)


@pytest.fixture
def s3(running_s3: S3Server) -> S3Server:
    """Returns the server that the session's settings name, with an empty bucket."""
    running_s3.reset()
    running_s3.create_bucket(BUCKET)
    return running_s3


@pytest.fixture
def uri(s3: S3Server) -> str:
    """Returns a location with a character that must be escaped in URLs."""
    return f"s3a://{BUCKET}/a table"


def table(s3: S3Server, uri: str) -> DeltaTable:
    """Opens the table with the Python package, without Spark."""
    return DeltaTable(uri, storage_options=s3.options())


def rows(s3: S3Server, uri: str) -> Rows:
    found = table(s3, uri).to_pyarrow_table()
    return sorted(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))


def spark_rows(spark: SparkSession, uri: str) -> Rows:
    return sorted(map(tuple, spark.read.format("deltalog").load(uri).collect()))


def commits(s3: S3Server) -> list[str]:
    return [
        key.rpartition("/")[2] for key in s3.keys(BUCKET) if key.endswith(".json") and "_delta_log" in key
    ]


def test_save_append_overwrite_and_load(spark: SparkSession, s3: S3Server, uri: str) -> None:
    data = spark.range(10, numPartitions=2).selectExpr("id", "id % 2 AS p", "concat('a b/c%', id % 2) AS s")
    data.write.format("deltalog").partitionBy("p", "s").save(uri)
    expected = [(i, i % 2, f"a b/c%{i % 2}") for i in range(10)]
    assert rows(s3, uri) == spark_rows(spark, uri) == expected
    data.where("id = 3").write.format("deltalog").mode("append").save(uri)
    assert spark.read.format("deltalog").load(uri).where("s = 'a b/c%1' AND id = 3").count() == 2
    data.where("id < 2").write.format("deltalog").mode("overwrite").save(uri)
    assert rows(s3, uri) == spark_rows(spark, uri) == expected[:2]
    assert spark.read.format("deltalog").option("versionAsOf", 0).load(uri).count() == 10
    # The log has relative paths of data files. There are no directory markers and no temporary files.
    paths = {add["path"] for add in added(s3)}
    assert all(":" not in path and not path.startswith("/") for path in paths)
    others = [key for key in s3.keys(BUCKET) if not key.endswith((".parquet", ".json", ".crc"))]
    assert others == []
    assert s3.open_uploads(BUCKET) == []


def added(s3: S3Server) -> list[dict[str, Any]]:
    lines = [
        json.loads(line)
        for name in s3.keys(BUCKET)
        if name.endswith(".json") and "_delta_log" in name
        for line in s3.get(BUCKET, name).decode().splitlines()
    ]
    return [line["add"] for line in lines if "add" in line]


def test_all_spellings_of_a_location_are_one_table(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.range(3).write.format("deltalog").save(uri)
    other = uri.replace("s3a:", "s3:")
    spark.range(3, 5).write.format("deltalog").mode("append").save(other)
    for spelled in (uri, other, uri.replace("s3a:", "s3n:"), uri + "/"):
        assert spark_rows(spark, spelled) == [(i,) for i in range(5)], spelled
    # An overwrite with the table's own rows is based on the version read, even under a different URL.
    read = spark.read.format("deltalog").load(other)
    spark.range(9, 10).write.format("deltalog").mode("append").save(uri)
    with pytest.raises(Exception, match="version 2, committed in the meantime"):
        read.where("id > 0").write.format("deltalog").mode("overwrite").save(uri)
    assert len(commits(s3)) == 3


def test_plans_show_the_location_and_the_files_that_are_read(spark: SparkSession, uri: str) -> None:
    spark.range(10, numPartitions=1).selectExpr("id", "id % 5 AS p").write.format("deltalog").partitionBy(
        "p"
    ).save(uri)
    plan = spark.read.format("deltalog").load(uri).where("p = 1")._jdf.queryExecution().toString()
    assert f"[v0, 1 of 5 files, {uri}]" in plan


def test_sql_by_name_and_by_path(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.sql(f"CREATE TABLE remote (id LONG, s STRING) USING deltalog LOCATION '{uri}'")
    try:
        spark.sql("INSERT INTO remote VALUES (1, 'a'), (2, 'b')")
        spark.sql(f"INSERT INTO deltalog.`{uri}` VALUES (3, 'c')")
        assert spark.sql("SELECT max(id), count(s) FROM remote WHERE id > 1").collect() == [(3, 2)]
        spark.sql("INSERT OVERWRITE remote SELECT /*+ COALESCE(1) */ id + 10, s FROM remote WHERE id > 1")
        assert rows(s3, uri) == [(12, "b"), (13, "c")]
        spark.sql("ALTER TABLE remote ADD COLUMN n INT")
        assert table(s3, uri).version() == 4
        described = spark.sql("DESCRIBE DETAIL remote").collect()[0]
        assert (described["location"], described["numFiles"]) == (f"s3://{BUCKET}/a%20table", 1)
        assert spark.sql(f"DESCRIBE HISTORY '{uri}'").count() == 5
        assert spark.sql("TRUNCATE TABLE remote").collect() == []
        assert spark.table("remote").collect() == []
    finally:
        spark.sql("DROP TABLE remote")
    # The table itself still exists.
    assert SparkTable.isDeltaTable(spark, uri)
    assert not SparkTable.isDeltaTable(spark, uri + "/none")
    spark.sql(f"CREATE OR REPLACE TABLE deltalog.`{uri}` USING deltalog AS SELECT 7 AS seven")
    assert rows(s3, uri) == [(7,)]


@pytest.mark.parametrize("vectors", [True, False])
def test_statements(spark: SparkSession, s3: S3Server, uri: str, vectors: bool) -> None:
    data = spark.range(100, numPartitions=1).selectExpr("id", "id % 2 AS p", "'old' AS s")
    data.write.format("deltalog").option("delta.enableDeletionVectors", vectors).partitionBy("p").save(uri)
    name = f"deltalog.`{uri}`"
    assert spark.sql(f"DELETE FROM {name} WHERE id < 10").collect() == [(10,)]
    assert spark.sql(f"UPDATE {name} SET s = 'new' WHERE id < 20").collect() == [(10,)]
    source = spark.createDataFrame([(15, 1, "merged"), (200, 0, "added")], "id long, p long, s string")
    merge = SparkTable.forPath(spark, uri).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    expected = [(i, i % 2, "new" if i < 20 else "old") for i in range(10, 100)]
    expected = [(15, 1, "merged") if row[0] == 15 else row for row in expected] + [(200, 0, "added")]
    assert rows(s3, uri) == spark_rows(spark, uri) == expected
    assert any(key.endswith(".bin") for key in s3.keys(BUCKET)) == vectors


def test_tasks_optimize_what_they_reach(spark: SparkSession, s3: S3Server, uri: str) -> None:
    """Tasks optimize tables that they can reach with the session's settings. If only a table's options lead to its
    store, the driver optimizes the table.
    """
    for first in range(0, 30, 10):
        data = spark.range(first, first + 10, numPartitions=1).selectExpr(
            "id", "IF(id % 2 = 0, 'a/b %', NULL) AS p"
        )
        data.write.format("deltalog").mode("append").partitionBy("p").save(uri)
    expected = spark_rows(spark, uri)
    spark.conf.set(MIN_SIZE, "0")
    try:
        [done] = spark.sql(f"OPTIMIZE deltalog.`{uri}`").collect()
        assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (2, 6)
        assert all(file.endswith("-c000.snappy.parquet") for file in table(s3, uri).file_uris())
        assert rows(s3, uri) == expected
        with S3Server() as other:
            other.create_bucket(BUCKET)
            for number in range(2):
                there = pa.table({"id": [number]})
                write_deltalake(uri, there, mode="append", storage_options=other.options())
            remote = SparkTable.forPath(spark, uri, other.options())
            assert remote.optimize().executeCompaction().collect()[0].metrics.numFilesAdded == 1
            [file] = DeltaTable(uri, storage_options=other.options()).file_uris()
            assert file.endswith(".c000.snappy.parquet")
    finally:
        spark.conf.unset(MIN_SIZE)
    assert rows(s3, uri) == expected


def test_tasks_clone_from_and_to_what_they_reach(
    spark: SparkSession, s3: S3Server, uri: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Tables are cloned from the store to a local directory, back, and within the store."""
    caplog.set_level(logging.INFO, "deltalog.spark")
    for first in range(0, 30, 10):
        data = spark.range(first, first + 10, numPartitions=1).selectExpr(
            "id", "IF(id % 2 = 0, 'a/b %', NULL) AS p"
        )
        data.write.format("deltalog").mode("append").partitionBy("p").save(uri)
    expected = spark_rows(spark, uri)
    bucket = uri.rpartition("/")[0]
    places = [uri, str(tmp_path / "a copy"), f"{bucket}/back %", f"{bucket}/within"]
    spark.conf.set(MIN_SIZE, "0")
    try:
        for source, target in itertools.pairwise(places):
            [done] = spark.sql(f"CREATE TABLE deltalog.`{target}` DEEP CLONE deltalog.`{source}`").collect()
            assert (done.num_copied_files, spark_rows(spark, target)) == (6, expected)
    finally:
        spark.conf.unset(MIN_SIZE)
    assert not [record for record in caplog.records if "the driver copies" in record.getMessage()]
    assert rows(s3, places[-1]) == expected


def test_a_failed_job_leaves_neither_a_commit_nor_files(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.range(3, numPartitions=1).write.format("deltalog").save(uri)
    before = s3.keys(BUCKET)
    failing = spark.range(10, numPartitions=1).selectExpr("if(id = 9, raise_error('boom'), id) AS id")
    with pytest.raises(Exception, match="boom"):
        failing.selectExpr("CAST(id AS LONG) AS id").write.format("deltalog").mode("append").save(uri)
    with in_one_task(spark), pytest.raises(Exception, match="boom"):
        spark.sql(f"UPDATE deltalog.`{uri}` SET id = if(id = 2, raise_error('boom'), 7)")
    assert s3.keys(BUCKET) == before


def test_a_commit_whose_answer_is_lost_is_one_commit(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.range(3, numPartitions=1).write.format("deltalog").save(uri)
    s3.faults(rule("close_after", "create", key="_delta_log", when={"first": 1}))
    spark.range(3, 5, numPartitions=1).write.format("deltalog").mode("append").save(uri)
    assert rows(s3, uri) == [(i,) for i in range(5)]
    assert len(commits(s3)) == 2


def test_files_that_the_core_does_not_see_are_not_committed(
    spark: SparkSession, s3: S3Server, uri: str
) -> None:
    """Hadoop keeps its connection to a store even if the settings change, so tasks may write to a different store than
    the core sees. Such files are not committed.
    """
    spark.range(3, numPartitions=1).write.format("deltalog").save(uri)
    with S3Server() as other:
        other.create_bucket(BUCKET)
        spark.conf.set("fs.s3a.endpoint", other.endpoint)
        try:
            with pytest.raises(Exception, match="make sure that the table's path is the same place"):
                spark.range(3, numPartitions=1).write.format("deltalog").mode("append").save(uri)
        finally:
            spark.conf.set("fs.s3a.endpoint", s3.endpoint)
        assert other.keys(BUCKET) == []
    assert len(commits(s3)) == 1


CANARY = "canary+secret/key"


def test_options_that_describe_the_store(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.range(3).write.format("deltalog").save(uri)
    # Options may repeat settings of the session, and may add settings for the core's requests.
    same = spark.read.format("deltalog").options(**{**s3.options(), "timeout": "1m"}).load(uri)
    assert "FileScan" in same._jdf.queryExecution().toString()
    assert same.count() == 3
    with pytest.raises(InvalidArgumentError, match="aws_region"):
        spark.read.format("deltalog").option("aws_regoin", "x").load(uri)
    with pytest.raises(Exception, match="SignatureDoesNotMatch") as refused:
        spark.read.format("deltalog").option("aws_secret_access_key", CANARY).load(uri)
    assert CANARY not in str(refused.value)
    for name in ("aws_secret_access_key", "fs.s3a.secret.key"):
        append = spark.range(3).write.format("deltalog").mode("append").option(name, CANARY)
        with pytest.raises(
            UnsupportedFeatureError, match=r"aws_secret_access_key.*fs\.s3a\.bucket"
        ) as refused:
            append.save(uri)
        assert CANARY not in str(refused.value)
    assert len(commits(s3)) == 1


def test_options_of_a_read_win_over_the_session(spark: SparkSession, s3: S3Server, uri: str) -> None:
    """Options of a read have precedence over the session's settings. Spark's tasks can reach a store only with the
    session's settings, so Python workers read the files instead.
    """
    spark.range(3).write.format("deltalog").save(uri)
    with S3Server() as other:
        other.create_bucket(BUCKET)
        there = pa.table({"id": [7, 8], "s": ["a", "b"]})
        write_deltalake(uri, there, storage_options=other.options())
        remote = spark.read.format("deltalog").options(**other.options()).load(uri).where("id > 7")
        with pytest.warns(RuntimeWarning, match="aws_endpoint_url"):
            plan = remote._jdf.queryExecution().toString()
        assert f"deltalog [v0, s3://{BUCKET}/a%20table]" in plan
        # Each DataFrame keeps its store, even if DataFrames of other stores are read in between.
        assert spark_rows(spark, uri) == [(0,), (1,), (2,)]
        assert [tuple(row) for row in remote.collect()] == [(8, "b")]


@pytest.mark.filterwarnings("ignore:.*aws_:RuntimeWarning")
def test_options_of_a_read_apply_to_a_path_with_a_version(
    spark: SparkSession, s3: S3Server, uri: str
) -> None:
    name = f"fs.s3a.bucket.{BUCKET}.secret.key"
    spark.conf.set(name, "wrong")
    try:
        for ids, place in (([1], uri), ([1, 2], uri), ([3, 4, 5], f"{uri}@v7")):
            there = pa.table({"id": ids})
            write_deltalake(place, there, storage_options=s3.options(), mode="overwrite")
        read = spark.read.format("deltalog").options(**s3.options())
        for end, ids in (("@v0", [1]), ("@v1", [1, 2]), ("@v7", [3, 4, 5])):
            assert sorted(row.id for row in read.load(f"{uri}{end}").collect()) == ids, end
    finally:
        spark.conf.unset(name)


def test_settings_of_a_bucket(spark: SparkSession, s3: S3Server) -> None:
    s3.create_bucket("other")
    spark.conf.set("fs.s3a.bucket.other.secret.key", "wrong")
    try:
        with pytest.raises(Exception, match=r"(?i)signature"):
            spark.range(3).write.format("deltalog").save("s3a://other/t")
    finally:
        spark.conf.unset("fs.s3a.bucket.other.secret.key")
    assert s3.keys("other") == []


def test_bad_places(spark: SparkSession, s3: S3Server) -> None:
    with pytest.raises(NotATableError):
        spark.read.format("deltalog").load(f"s3a://{BUCKET}/none")
    with pytest.raises(Exception, match=r"(?i)bucket"):
        spark.read.format("deltalog").load("s3a://no-such-bucket/t")
    with pytest.raises(InvalidArgumentError, match="credentials") as refused:
        spark.read.format("deltalog").load(f"s3a://key:secret@{BUCKET}/t")
    assert "secret" not in str(refused.value)
    with pytest.raises(UnsupportedFeatureError, match=r"hadoop-azure:\d"):
        spark.range(3).write.format("deltalog").save("abfss://c@account.dfs.core.windows.net/t")


@contextmanager
def out_of_reach() -> Iterator[str]:
    """Makes deltalog believe that Hadoop has no class for the tables' file system, so that Spark cannot reach them.
    Yields the reason that errors and warnings contain.
    """
    reason = "Hadoop has no file system for a test"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relation, "last_location", lambda uri: Location(uri, None, reason))
        patch.setattr(
            Planner, "location", property(lambda planner: Location(planner.snapshot.uri, None, reason))
        )
        yield reason


def test_python_workers_read_what_spark_reads(spark: SparkSession) -> None:
    """Python workers read the same rows as Spark from a golden table for each feature."""
    if not TABLES:
        missing(f"no golden tables at {ROOT}; DELTALOG_GOLDEN names another folder")
    tables = {feature: table for table in TABLES if table.outcome == "read" for feature in table.features}
    assert {"columnMapping", "deletionVectors", "timestampNtz"} <= tables.keys()
    read = 0
    with out_of_reach() as reason:
        for golden in {table.name: table for table in tables.values()}.values():
            if "variant" in str(golden.expected["schema"]):
                with pytest.raises(UnsupportedFeatureError, match=reason):
                    outcome(spark, golden)
            else:
                assert outcome(spark, golden) == "read", golden.name
                read += 1
    assert read > 5


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "another spelling": lambda frame: frame.where("ID > 7"),
    "partition": lambda frame: frame.where("P = 1").select("iD"),
    "chance": lambda frame: frame.where("id > 3 AND rand() >= 0"),
    "nested": lambda frame: frame.where("s.a = 4").select("S.B.X"),
    "subquery": lambda frame: frame.where("p IN (SELECT max(p) FROM (VALUES (1), (2)) v(p))"),
    "no column": lambda frame: frame.selectExpr("1 AS one"),
    "join": lambda frame: frame.join(frame.select("id").where("id < 3"), "id"),
    "rows": lambda frame: frame.sample(1.0).groupBy("p").count(),
}


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_what_python_workers_read(spark: SparkSession, path: str, query: str) -> None:
    data = spark.range(10, numPartitions=1).selectExpr(
        "id AS Id", "id % 3 AS p", "named_struct('a', id, 'b', array(named_struct('x', id, 'y', 1))) AS s"
    )
    data.write.format("deltalog").partitionBy("p").save(path)
    reads: tuple[Callable[[], DataFrame], ...] = (
        lambda: spark.read.format("deltalog").load(path),
        lambda: spark.sql(f"SELECT * FROM deltalog.`{path}`"),
    )
    for read in reads:
        expected = sorted(map(str, QUERIES[query](read()).collect()))
        with out_of_reach():
            frame = QUERIES[query](read())
            assert "MapInArrow deltalog [v0, file:" in frame._jdf.queryExecution().toString()
            assert sorted(map(str, frame.collect())) == expected != []


@pytest.mark.thorough
def test_without_the_connector(s3: S3Server, tmp_path: Path) -> None:
    """Without Hadoop's connector for the store, reads give the right rows, writes are refused, and the secret appears
    nowhere.
    """
    s3.set(secret_key=CANARY)
    options = s3.options()
    days = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
    columns = {
        "id": pa.array([1, 2, 3], pa.int32()),
        "t": days,
        "s": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, None],
        "l": [[{"c": 1, "d": 2}], [], None],
        "p": ["x y", "x y", "z%"],
    }
    write_deltalake("s3://tables/a t", pa.table(columns), storage_options=options, partition_by=["p"])
    code = f"""
        import json, warnings
        from pyspark.sql import DataFrame, SparkSession
        import deltalog.spark
        from deltalog import UnsupportedFeatureError
        options = json.loads({json.dumps(options)!r})
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", "file://{tmp_path}")
        builder = builder.config("spark.sql.planChangeLog.level", "WARN").config("spark.sql.shuffle.partitions", "1")
        builder = builder.config("spark.eventLog.compress", "false").config("spark.sql.session.timeZone", "UTC")
        spark = deltalog.spark.enable(builder.getOrCreate())
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            def read():
                return spark.read.format("deltalog").options(**options).load("s3a://tables/a t")
            rows = [tuple(row) for row in read().orderBy("id").collect()]
            nested = [tuple(row) for row in read().where("p = 'x y' AND id > 1").select("s.b", "l.d").collect()]
            read().alias("a").join(read().alias("b"), "id").groupBy("a.p").count().explain(True)
            print("counts", read().count(), read().where("id = 1").count(), read().agg({{"id": "sum"}}).collect())
            print("rows", rows)
            print("nested", nested)
        said = [str(warning.message) for warning in warned if warning.category is RuntimeWarning]
        print("warned", len(said), said)
        for name, option in (
            ("access.key", "aws_access_key_id"), ("secret.key", "aws_secret_access_key"),
            ("endpoint", "aws_endpoint_url"), ("endpoint.region", "aws_region"),
        ):
            spark.conf.set("fs.s3a." + name, options[option])
        print("sql", spark.sql("SELECT sum(id) FROM deltalog.`s3://tables/a t` WHERE p <> 'z%'").collect())
        print("described", spark.sql("DESCRIBE HISTORY deltalog.`s3://tables/a t`").count())
        for refused in (
            lambda: read().select("_metadata.file_path").collect(),
            lambda: spark.range(3).write.format("deltalog").save("s3a://tables/new"),
            lambda: spark.sql("DELETE FROM deltalog.`s3a://tables/a t`"),
            lambda: spark.sql("INSERT INTO deltalog.`s3a://tables/a t` SELECT * FROM deltalog.`s3a://tables/a t`"),
        ):
            try:
                print("not refused", refused())
            except UnsupportedFeatureError as error:
                print("refused", error)
        print(read(), repr(read().rdd))
        spark.stop()
    """
    ran = run_python(code, PYSPARK_PYTHON=sys.executable, PYTHONWARNINGS="ignore")
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    found = dict(line.split(" ", 1) for line in ran.stdout.splitlines() if " " in line)
    assert found["counts"] == "3 1 [Row(sum(id)=6)]"
    assert "(3, datetime.datetime(2024, 1, 3, 12, 0), None, None, 'z%')" in found["rows"]
    assert found["nested"] == "[('y', [])]"
    assert found["warned"].startswith("1 ")
    assert re.search(r"spark\.jars\.packages=org\.apache\.hadoop:hadoop-aws:\d", found["warned"])
    assert found["sql"] == "[Row(sum(id)=3)]"
    assert found["described"] == "1"
    assert ran.stdout.count("hadoop-aws:") == 5, ran.stdout
    assert "not refused" not in ran.stdout
    # The plan shows the table's location and what is read, and the secret occurs nowhere.
    assert "MapInArrow deltalog [v0, s3://tables/a%20t]" in ran.stdout
    seen = said + "".join(file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file())
    assert "SparkListenerJobStart" in seen
    assert CANARY not in seen
    assert base64.b64encode(CANARY.encode()).decode() not in seen
    assert s3.keys(BUCKET) == [key for key in s3.keys(BUCKET) if key.startswith("a t/")]


def test_a_missing_file_is_named(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.range(3, numPartitions=1).write.format("deltalog").save(uri)
    [file] = [key for key in s3.keys(BUCKET) if key.endswith(".parquet")]
    s3.delete(BUCKET, file)
    with pytest.raises(MissingFileError, match="the file is not there") as missed:
        spark.read.format("deltalog").load(uri).collect()
    assert (missed.value.table, missed.value.version) == (f"s3://{BUCKET}/a%20table", 0)
    assert missed.value.path == file.removeprefix("a table/")
