"""Tables in object stores: the core reads and commits the log, and Spark's tasks read and write the data files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, InvalidArgumentError, NotATableError, UnsupportedFeatureError
from deltalog.tables import DeltaTable as SparkTable
from tests.spark.conftest import hadoop_aws
from tests.spark.statement_tables import in_one_task
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
            # A request that fails is not repeated for minutes.
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
    """The server that the session's settings name, with an empty bucket."""
    running_s3.reset()
    running_s3.create_bucket(BUCKET)
    return running_s3


@pytest.fixture
def uri(s3: S3Server) -> str:
    """A location with a character that must be escaped in URLs."""
    return f"s3a://{BUCKET}/a table"


def table(s3: S3Server, uri: str) -> DeltaTable:
    """Returns the table as Python reads it."""
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
    # The log names files relative to the table, and nothing else is there: no markers, no temporary files.
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


def test_all_spellings_are_one_table(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.range(3).write.format("deltalog").save(uri)
    other = uri.replace("s3a:", "s3:")
    spark.range(3, 5).write.format("deltalog").mode("append").save(other)
    for spelled in (uri, other, uri.replace("s3a:", "s3n:"), uri + "/"):
        assert spark_rows(spark, spelled) == [(i,) for i in range(5)], spelled
    # An overwrite with rows of the same table by another name is based on the version that was read.
    read = spark.read.format("deltalog").load(other)
    spark.range(9, 10).write.format("deltalog").mode("append").save(uri)
    with pytest.raises(Exception, match="version 2, committed in the meantime"):
        read.where("id > 0").write.format("deltalog").mode("overwrite").save(uri)
    assert len(commits(s3)) == 3


def test_plans_show_the_place_and_what_is_read(spark: SparkSession, uri: str) -> None:
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
    # The table itself stays.
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
    """Hadoop keeps the connection to a store that it has used, whatever the settings say later."""
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


def test_what_options_say_about_the_store(spark: SparkSession, s3: S3Server, uri: str) -> None:
    spark.range(3).write.format("deltalog").save(uri)
    reader = spark.read.format("deltalog")
    # They may say the same as the session, and more about the requests for the log.
    same = {**s3.options(), "timeout": "1m"}
    assert reader.options(**same).load(uri).count() == 3
    with pytest.raises(InvalidArgumentError, match="aws_region"):
        spark.read.format("deltalog").option("aws_regoin", "x").load(uri)
    other = {"aws_secret_access_key": "a secret of mine"}
    for act in (
        lambda: spark.read.format("deltalog").options(**other).load(uri).collect(),
        lambda: spark.range(3).write.format("deltalog").mode("append").options(**other).save(uri),
        lambda: (
            spark.range(3)
            .write.format("deltalog")
            .mode("append")
            .option("fs.s3a.secret.key", "a secret of mine")
            .save(uri)
        ),
    ):
        with pytest.raises(Exception) as refused:  # noqa: PT011 (of several classes)
            act()
        assert "a secret of mine" not in str(refused.value)
    assert len(commits(s3)) == 1


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
