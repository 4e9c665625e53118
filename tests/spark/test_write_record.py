"""Writes can record the progress of an application, and metadata of the user, in their commits."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

import deltalog
from deltalog.spark.errors import InvalidArgumentError

APP_ID = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    names = {
        "app_id": APP_ID,
        "version": VERSION,
        "metadata": USER_METADATA,
        "reset": f"{VERSION}.autoReset.enabled",
    }
    for name, value in values.items():
        spark.conf.set(names[name], value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(names[name])


def count(path: str) -> int:
    return len(deltalake.DeltaTable(path).to_pyarrow_table())


def files(path: str) -> set[Path]:
    return set(Path(path).rglob("*.parquet"))


def write(data: DataFrame, version: int, mode: str = "append") -> DataFrameWriter:
    writer = data.write.format("deltalog").mode(mode)
    return writer.option("txnAppId", "job").option("txnVersion", version)


def test_a_repeated_write_has_no_effect(
    spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Protocol: "Transaction Identifiers"."""
    data = spark.range(3)
    write(data, 7, "error").save(path)
    assert deltalake.DeltaTable(path).transaction_version("job") == 7
    before = files(path)
    failing = data.selectExpr("raise_error('the rows were computed') AS id")
    for mode in ("append", "overwrite", "error"):
        for version in (7, -1):
            with caplog.at_level(logging.INFO, "deltalog.spark"):
                write(failing, version, mode).save(path)
            assert "'job' has already recorded version 7" in caplog.text
            caplog.clear()
    assert (files(path), deltalog.DeltaTable(path).version()) == (before, 0)
    write(data, 8).save(path)
    assert (count(path), deltalog.DeltaTable(path).transaction_version("job")) == (6, 8)


EMPTY_WRITES: dict[str, Callable[[SparkSession, str], Any]] = {
    "INSERT": lambda spark, path: spark.sql(f"INSERT INTO deltalog.`{path}` SELECT 1L WHERE false"),
    "INSERT OVERWRITE": lambda spark, path: spark.sql(
        f"INSERT OVERWRITE deltalog.`{path}` SELECT 1L WHERE false"
    ),
    "append": lambda spark, path: spark.range(0).write.format("deltalog").mode("append").save(path),
    "writeTo": lambda spark, path: spark.range(0).writeTo(f"deltalog.`{path}`").append(),
    "replaceWhere": lambda spark, path: (
        spark.range(0).write.format("deltalog").mode("overwrite").option("replaceWhere", "id > 5").save(path)
    ),
    "TRUNCATE": lambda spark, path: spark.sql(f"TRUNCATE TABLE deltalog.`{path}`"),
}


@pytest.mark.parametrize("write", EMPTY_WRITES)
def test_a_write_that_changes_nothing_commits_nothing(spark: SparkSession, path: str, write: str) -> None:
    """A write that changes nothing makes no commit, as in the JVM connector, and as with DELETE, UPDATE and MERGE."""
    spark.range(0).write.format("deltalog").save(path)
    EMPTY_WRITES[write](spark, path)
    assert deltalog.DeltaTable(path).version() == 0


def test_an_empty_write_commits_all_else_that_it_changes(spark: SparkSession, path: str) -> None:
    """A write without rows still commits everything else that it changes: it can record the progress of an
    application, add columns, and remove the rows that it replaces.
    """
    spark.range(3).write.format("deltalog").save(path)
    write(spark.range(0), 5).save(path)
    table = deltalog.DeltaTable(path)
    assert (table.version(), table.transaction_version("job")) == (1, 5)
    more = spark.sql("SELECT 1L AS id, 2 AS more WHERE false").write.format("deltalog").mode("append")
    more.option("mergeSchema", True).save(path)
    assert deltalog.DeltaTable(path).version() == 2
    more.option("mergeSchema", True).save(path)
    assert deltalog.DeltaTable(path).version() == 2
    spark.sql(f"INSERT OVERWRITE deltalog.`{path}` SELECT 1L, 2 WHERE false")
    assert (deltalog.DeltaTable(path).version(), count(path)) == (3, 0)


INSERTS: dict[str, Callable[[SparkSession, str], Any]] = {
    "save": lambda spark, path: spark.range(3).write.format("deltalog").mode("append").save(path),
    "INSERT": lambda spark, path: spark.sql(f"INSERT INTO deltalog.`{path}` SELECT id FROM range(3)"),
    "insertInto": lambda spark, path: spark.range(3).write.insertInto(f"deltalog.`{path}`"),
}


@pytest.mark.parametrize("way", INSERTS)
def test_the_settings_of_the_session_count(spark: SparkSession, path: str, way: str) -> None:
    spark.range(3).write.format("deltalog").save(path)
    with settings(spark, app_id="job", version="1", metadata="from the session"):
        for _ in range(2):
            INSERTS[way](spark, path)
    table = deltalog.DeltaTable(path)
    assert (table.version(), table.transaction_version("job"), count(path)) == (1, 1, 6)
    assert [entry.get("userMetadata") for entry in table.history()] == ["from the session", None]
    with settings(spark, app_id="job", version="2", reset="true"):
        INSERTS[way](spark, path)
        assert spark.conf.get(VERSION, None) is None
        with pytest.raises(InvalidArgumentError, match=r"txnAppId is set without .*txnVersion"):
            INSERTS[way](spark, path)
        spark.conf.set(VERSION, "2")
        INSERTS[way](spark, path)
        assert spark.conf.get(VERSION, None) is None
    assert count(path) == 9


def test_options_take_precedence_over_the_session(spark: SparkSession, path: str) -> None:
    with settings(spark, app_id="other", version="1", metadata="of the session"):
        write(spark.range(1), 5).option("userMetadata", "of the write").save(path)
    table = deltalog.DeltaTable(path)
    assert table.transaction_versions() == {"job": 5}
    assert table.history()[0]["userMetadata"] == "of the write"


def test_statements_that_create_tables_record_both(spark: SparkSession, path: str) -> None:
    with settings(spark, app_id="job", version="1", metadata="made"):
        spark.sql(f"CREATE TABLE t USING deltalog LOCATION '{path}' AS SELECT 1 AS id")
        spark.sql(f"CREATE TABLE u (id INT) USING deltalog LOCATION '{path}-empty'")
    try:
        tables = [deltalog.DeltaTable(place) for place in (path, f"{path}-empty")]
        assert [table.history()[0]["userMetadata"] for table in tables] == ["made", "made"]
        assert tables[0].transaction_versions() == {"job": 1}
    finally:
        spark.sql("DROP TABLE t")
        spark.sql("DROP TABLE u")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"txnAppId": "a"}, "txnAppId is set without txnVersion"),
        ({"txnVersion": "1"}, "txnVersion is set without txnAppId"),
        ({"txnAppId": "a", "txnVersion": "one"}, "txnVersion must be a 64-bit integer, not 'one'"),
        ({"txnAppId": "a", "txnVersion": str(2**63)}, "64-bit integer"),
    ],
)
def test_an_application_has_a_name_and_a_version(
    spark: SparkSession, path: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        spark.range(1).write.format("deltalog").options(**options).save(path)
    assert not files(path)
