"""For tables in HDFS, the core reads the log and commits to it, and Spark's tasks read and write the data files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import (
    DeltaTable,
    InvalidArgumentError,
    NotATableError,
    UnsupportedFeatureError,
    write_deltalake,
)
from deltalog.tables import DeltaTable as SparkTable
from tests.spark.statement_tables import in_one_task
from tests.stores.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.newest, pytest.mark.thorough]

Rows = list[tuple[Any, ...]]


_numbers = itertools.count()


@pytest.fixture
def uri(hdfs: MiniHdfs) -> str:
    """Returns a location with a character that must be escaped in URLs."""
    return f"{hdfs.root}/{next(_numbers)}/a table"


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Sets Hadoop settings in the session until the end of the `with` block. `_` in a name is replaced with `.`."""
    named = {name.replace("_", "."): value for name, value in values.items()}
    for name, value in named.items():
        spark.conf.set(name, value)
    yield
    for name in named:
        spark.conf.unset(name)


def rows(uri: str) -> Rows:
    found = DeltaTable(uri).to_pyarrow_table()
    return sorted(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))


def spark_rows(spark: SparkSession, uri: str) -> Rows:
    return sorted(map(tuple, spark.read.format("deltalog").load(uri).collect()))


def files(spark: SparkSession, uri: str) -> list[str]:
    """Returns the names of all files below a location, as Hadoop lists them."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(uri)
    found = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).listFiles(path, True)
    names = []
    while found.hasNext():
        names.append(found.next().getPath().toString().removeprefix(uri))
    return sorted(names)


def test_save_append_overwrite_and_load(spark: SparkSession, uri: str) -> None:
    data = spark.range(10, numPartitions=1).selectExpr("id", "id % 2 AS p", "concat('a b/c%', id % 2) AS s")
    data.write.format("deltalog").partitionBy("p", "s").save(uri)
    expected = [(i, i % 2, f"a b/c%{i % 2}") for i in range(10)]
    assert rows(uri) == spark_rows(spark, uri) == expected
    data.where("id = 3").write.format("deltalog").mode("append").save(uri)
    read = spark.read.format("deltalog").load(uri).where("s = 'a b/c%1' AND id = 3")
    assert read.count() == 2
    assert f"[v1, 2 of 3 files, {uri}]" in read._jdf.queryExecution().toString()
    data.where("id < 2").write.format("deltalog").mode("overwrite").save(uri)
    assert rows(uri) == spark_rows(spark, uri) == expected[:2]
    assert spark.read.format("deltalog").option("versionAsOf", 0).load(uri).count() == 10
    # The log has all commits, and there are no directory markers and no temporary files.
    assert [name for name in files(spark, uri) if not name.endswith((".parquet", ".json", ".crc"))] == []
    assert DeltaTable(uri).version() == 2


def test_sql_by_name_and_by_path(spark: SparkSession, uri: str) -> None:
    spark.sql(f"CREATE TABLE in_hdfs (id LONG, s STRING) USING deltalog LOCATION '{uri}'")
    try:
        spark.sql(f"INSERT INTO deltalog.`{uri}` VALUES (1, 'a'), (2, 'b')")
        spark.sql("INSERT OVERWRITE in_hdfs SELECT /*+ COALESCE(1) */ id + 10, s FROM in_hdfs WHERE id > 1")
        assert spark.sql("SELECT max(id), count(s) FROM in_hdfs").collect() == [(12, 1)]
        assert rows(uri) == [(12, "b")]
        described = spark.sql("DESCRIBE DETAIL in_hdfs").collect()[0]
        assert described["location"] == uri.replace(" ", "%20")
    finally:
        spark.sql("DROP TABLE in_hdfs")
    assert SparkTable.isDeltaTable(spark, uri)
    assert not SparkTable.isDeltaTable(spark, uri + "/none")


def test_statements(spark: SparkSession, uri: str) -> None:
    data = spark.range(100, numPartitions=1).selectExpr("id", "id % 2 AS p", "'old' AS s")
    data.write.format("deltalog").option("delta.enableDeletionVectors", True).save(uri)
    name = f"deltalog.`{uri}`"
    assert spark.sql(f"DELETE FROM {name} WHERE id < 10").collect() == [(10,)]
    assert spark.sql(f"UPDATE {name} SET s = 'new' WHERE id < 20").collect() == [(10,)]
    source = spark.createDataFrame([(15, 1, "merged"), (200, 0, "added")], "id long, p long, s string")
    merge = SparkTable.forPath(spark, uri).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    expected = [(i, i % 2, "new" if i < 20 else "old") for i in range(10, 100)]
    expected = [(15, 1, "merged") if row[0] == 15 else row for row in expected] + [(200, 0, "added")]
    assert rows(uri) == spark_rows(spark, uri) == expected
    assert any(name.endswith(".bin") for name in files(spark, uri))


def test_a_failed_job_leaves_neither_a_commit_nor_files(spark: SparkSession, uri: str) -> None:
    spark.range(3, numPartitions=1).write.format("deltalog").save(uri)
    before = files(spark, uri)
    failing = spark.range(10, numPartitions=1).selectExpr(
        "CAST(if(id = 9, raise_error('boom'), id) AS LONG) AS id"
    )
    with pytest.raises(Exception, match="boom"):
        failing.write.format("deltalog").mode("append").save(uri)
    with in_one_task(spark), pytest.raises(Exception, match="boom"):
        spark.sql(f"UPDATE deltalog.`{uri}` SET id = if(id = 2, raise_error('boom'), 7)")
    assert files(spark, uri) == before


def test_the_default_file_system(spark: SparkSession, hdfs: MiniHdfs, uri: str) -> None:
    path = uri.removeprefix(hdfs.root)
    with settings(spark, fs_defaultFS=hdfs.root):
        spark.range(3, numPartitions=1).write.format("deltalog").save(path)
        for spelled in (path, f"hdfs://{path}", f"hdfs:{path}", f"HDFS://{hdfs.name_node}{path}/"):
            assert spark_rows(spark, spelled) == [(0,), (1,), (2,)], spelled
        # A relative path is below the user's directory.
        spark.range(4, 5, numPartitions=1).write.format("deltalog").save("relative")
        user = spark._jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName()  # type: ignore[union-attr]
        assert spark_rows(spark, f"/user/{user}/relative") == [(4,)]
    assert rows(uri) == [(0,), (1,), (2,)]
    with pytest.raises(InvalidArgumentError, match="names no name node"):
        spark.read.format("deltalog").load(f"hdfs://{path}")


def test_a_name_of_several_name_nodes(spark: SparkSession, hdfs: MiniHdfs, uri: str) -> None:
    """The location of the table names a name service with two name nodes, and the first one does not run. Only the
    session has the settings that define this name service.
    """
    provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    of_lake = {
        "dfs_nameservices": "Lake",
        "dfs_ha_namenodes_Lake": "a,b",
        "dfs_namenode_rpc-address_Lake_a": "127.0.0.1:1",
        "dfs_namenode_rpc-address_Lake_b": hdfs.name_node,
        "dfs_client_failover_proxy_provider_Lake": provider,
        "dfs_client_failover_sleep_base_millis": "10",
        "dfs_client_failover_sleep_max_millis": "10",
    }
    path = uri.removeprefix(hdfs.root)
    with settings(spark, **of_lake):
        spark.range(3, numPartitions=1).write.format("deltalog").save(f"hdfs://Lake{path}")
        assert spark_rows(spark, f"hdfs://Lake{path}") == [(0,), (1,), (2,)]
        assert (
            SparkTable.forPath(spark, f"hdfs://Lake{path}")
            .detail()
            .collect()[0]
            .location.startswith("hdfs://Lake/")
        )
    assert rows(uri) == [(0,), (1,), (2,)]


def test_the_session_names_the_user(spark: SparkSession, uri: str) -> None:
    """The driver writes the log as Hadoop's login user. The data files belong to the same user."""
    jvm: Any = spark._jvm
    directory = jvm.org.apache.hadoop.fs.Path(uri)
    files = directory.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    files.mkdirs(directory)
    files.setPermission(directory, jvm.org.apache.hadoop.fs.permission.FsPermission("777"))
    information = jvm.org.apache.hadoop.security.UserGroupInformation
    before = information.getLoginUser()
    information.setLoginUser(information.createRemoteUser("ann"))
    try:
        spark.range(3, numPartitions=1).write.format("deltalog").save(uri)
    finally:
        information.setLoginUser(before)
    found = files.listFiles(directory, True)
    owners = []
    while found.hasNext():
        file = found.next()
        owners.append((file.getPath().getName().rpartition(".")[2], file.getOwner()))
    assert {("json", "ann"), ("parquet", "ann")} <= set(owners)
    assert {owner for _, owner in owners} == {"ann"}


def test_bad_places(spark: SparkSession, hdfs: MiniHdfs, uri: str) -> None:
    with pytest.raises(NotATableError):
        spark.read.format("deltalog").load(uri)
    with pytest.raises(InvalidArgumentError, match="credentials") as refused:
        spark.read.format("deltalog").load(f"hdfs://user:secret@{hdfs.name_node}/t")
    assert "secret" not in str(refused.value)
    with pytest.raises(UnsupportedFeatureError, match="viewfs"):
        spark.read.format("deltalog").load("viewfs://lake/t")
    # A host without a port is contacted at Hadoop's default port.
    once = settings(spark, dfs_client_failover_max_attempts="1")
    with once, pytest.raises(Exception, match=r"127\.0\.0\.1:8020"):
        spark.read.format("deltalog").load("hdfs://127.0.0.1/t")


def test_options_of_a_read_win_over_the_session(spark: SparkSession, uri: str) -> None:
    """Options of a read have precedence over the session's settings. Since Spark's tasks have only the settings,
    Python workers read the files.
    """
    write_deltalake(uri, pa.table({"id": [1]}))
    other = spark.read.format("deltalog").option("hdfs_user", "bob").load(uri)
    with pytest.warns(RuntimeWarning, match="hdfs_user"):
        assert other.collect() == [(1,)]
