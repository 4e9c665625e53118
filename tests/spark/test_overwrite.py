"""Overwrites: which rows they replace, and errors after their commits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import deltalake
import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession

import deltalog
from deltalog.spark.bridge import writes
from deltalog.spark.errors import AfterCommitError, CommitConflictError, DeltaError, InvalidArgumentError
from deltalog.spark.sql.entries import NewEntry
from deltalog.spark.tables import DeltaTable

MODE = "spark.sql.sources.partitionOverwriteMode"
SCHEMA = "a int, p string"


def rows(path: str) -> list[tuple[int, str]]:
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    return sorted((row["a"], row["p"]) for row in table.to_pylist())


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


@pytest.fixture
def named(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates the table `t` with one row in each of the partitions x and y, and returns its path."""
    data = spark.createDataFrame([(1, "x"), (2, "y")], SCHEMA)
    data.write.format("deltalog").partitionBy("p").option("path", path).saveAsTable("t")
    yield path
    spark.sql("DROP TABLE t")


WAYS: dict[str, Callable[[SparkSession, DataFrame, str], object]] = {
    "save": lambda _, new, path: new.write.format("deltalog").mode("overwrite").save(path),
    "save with partitionBy": lambda _, new, path: (
        new.write.format("deltalog").mode("overwrite").partitionBy("p").save(path)
    ),
    "saveAsTable": lambda _, new, path: (
        new.write.format("deltalog").mode("overwrite").partitionBy("p").saveAsTable("t")
    ),
    "insertInto": lambda _, new, path: new.write.mode("overwrite").insertInto("t"),
    "insertInto of a path": lambda _, new, path: new.write.insertInto(f"deltalog.`{path}`", overwrite=True),
    "INSERT": lambda spark, new, path: spark.sql("INSERT OVERWRITE t SELECT 3, 'x'"),
    "INSERT by path": lambda spark, new, path: spark.sql(f"INSERT OVERWRITE deltalog.`{path}` SELECT 3, 'x'"),
}


@pytest.mark.parametrize("way", WAYS)
def test_dynamic_overwrite_as_a_session_setting(spark: SparkSession, named: str, way: str) -> None:
    new = spark.createDataFrame([(3, "x")], SCHEMA)
    with setting(spark, MODE, "DYNAMIC"):
        WAYS[way](spark, new, named)
    assert rows(named) == [(2, "y"), (3, "x")]
    WAYS[way](spark, new, named)
    assert rows(named) == [(3, "x")]


OPTION = "partitionOverwriteMode"


def test_the_option_takes_precedence_over_the_session_setting(spark: SparkSession, named: str) -> None:
    writer = spark.createDataFrame([(3, "x")], SCHEMA).write.format("deltalog").mode("overwrite")
    with pytest.raises(InvalidArgumentError, match="static"):
        writer.option(OPTION, "some").save(named)
    assert rows(named) == [(1, "x"), (2, "y")]
    writer.option(OPTION, "Dynamic").partitionBy("p").saveAsTable("t")
    assert rows(named) == [(2, "y"), (3, "x")]
    with setting(spark, MODE, "dynamic"):
        writer.option(OPTION, "static").save(named)
    assert rows(named) == [(3, "x")]


def test_dynamic_overwrites_of_null_partitions_and_without_rows(spark: SparkSession, named: str) -> None:
    """In a dynamic overwrite, NULL is a partition like any other, and an overwrite without rows replaces nothing."""
    writes = [[(3, None), (4, "y")], [(5, None)], []]
    for rows_to_write in writes:
        new = spark.createDataFrame(rows_to_write, SCHEMA).write.format("deltalog").mode("overwrite")
        new.option(OPTION, "dynamic").save(named)
    found = spark.read.format("deltalog").load(named).collect()
    assert sorted(map(tuple, found), key=str) == [(1, "x"), (4, "y"), (5, None)]


def test_dynamic_overwrites_conflict_in_their_partitions_only(spark: SparkSession, named: str) -> None:
    """A dynamic overwrite conflicts only with commits in its partitions, after the version from which its data was
    read.
    """

    def overwrite(base: int) -> None:
        new = spark.createDataFrame([(3, "x")], SCHEMA).write.format("deltalog").mode("overwrite")
        new.option(OPTION, "dynamic").option("baseVersion", base).save(named)

    spark.createDataFrame([(9, "y")], SCHEMA).write.format("deltalog").mode("append").save(named)
    overwrite(0)
    assert rows(named) == [(2, "y"), (3, "x"), (9, "y")]
    with pytest.raises(CommitConflictError) as caught:
        overwrite(0)
    assert (caught.value.reason, caught.value.version) == ("concurrent_append", 2)


def test_the_dynamic_setting_does_not_affect_other_writes(
    spark: SparkSession, named: str, tmp_path: Path
) -> None:
    """The setting for dynamic overwrites does not affect other writes. An append replaces nothing, and without
    partitions, both modes replace the whole table.
    """
    new = spark.createDataFrame([(3, "x")], SCHEMA)
    plain = str(tmp_path / "plain")
    with setting(spark, MODE, "dynamic"):
        new.write.format("deltalog").mode("append").save(named)
        new.write.format("deltalog").mode("overwrite").save(plain)
        new.selectExpr("a + 1 AS a", "p").write.format("deltalog").mode("overwrite").save(plain)
        new.write.format("deltalog").mode("overwrite").partitionBy("p").save(str(tmp_path / "new"))
    assert rows(named) == [(1, "x"), (2, "y"), (3, "x")]
    assert rows(plain) == [(4, "x")]
    assert rows(str(tmp_path / "new")) == [(3, "x")]


def log_of(path: str) -> list[str]:
    return sorted(file.name for file in Path(path, "_delta_log").glob("*.json"))


@contextmanager
def dropped(spark: SparkSession, *names: str) -> Iterator[None]:
    try:
        yield
    finally:
        for name in names:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("overwrite", "has the format parquet, which deltalog does not overwrite"),
        ("append", r"The format of the existing table \S+ is `Parquet\w*`"),
    ],
)
def test_save_as_table_over_another_format_is_refused(
    spark: SparkSession, tmp_path: Path, mode: str, message: str
) -> None:
    with dropped(spark, "plain"):
        old = spark.createDataFrame([(1, "x")], SCHEMA)
        old.write.format("parquet").option("path", str(tmp_path / "plain")).saveAsTable("plain")
        before = sorted(tmp_path.rglob("*"))
        new = spark.createDataFrame([(2, "y")], SCHEMA)
        with pytest.raises(AnalysisException, match=message):
            new.write.format("deltalog").mode(mode).saveAsTable("plain")
        assert sorted(tmp_path.rglob("*")) == before
        assert [tuple(row) for row in spark.table("plain").collect()] == [(1, "x")]


@pytest.mark.parametrize("is_managed", [True, False])
def test_save_as_table_in_overwrite_mode_adds_a_version(
    spark: SparkSession, path: str, is_managed: bool
) -> None:
    """In the mode overwrite, `saveAsTable` adds a version and never drops the table, so a failing job leaves the table
    unchanged.
    """
    with dropped(spark, "kept"):
        writer = spark.createDataFrame([(1, "x")], SCHEMA).write.format("deltalog")
        (writer if is_managed else writer.option("path", path)).saveAsTable("kept")
        location = url2pathname(
            urlsplit(DeltaTable.forName(spark, "kept").detail().collect()[0]["location"]).path
        )
        table_id = deltalake.DeltaTable(location).metadata().id
        failing = spark.range(4, numPartitions=1).selectExpr(
            "CAST(if(id = 3, raise_error('boom'), id) AS INT) AS a", "'y' AS p"
        )
        before = sorted(Path(location).rglob("*"))
        with pytest.raises(SparkRuntimeException, match="boom"):
            failing.write.format("deltalog").mode("overwrite").saveAsTable("kept")
        assert [file for file in sorted(Path(location).rglob("*")) if file not in before] == []
        assert [tuple(row) for row in spark.table("kept").collect()] == [(1, "x")]
        new = spark.createDataFrame([(2, "y")], SCHEMA)
        new.write.format("deltalog").mode("overwrite").saveAsTable("kept")
        assert [tuple(row) for row in spark.table("kept").collect()] == [(2, "y")]
        assert [tuple(row) for row in spark.sql("SELECT * FROM kept VERSION AS OF 0").collect()] == [(1, "x")]
        assert deltalake.DeltaTable(location).metadata().id == table_id


def test_errors_after_a_commit_state_that_it_succeeded(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError("the store went away")

    data = spark.createDataFrame([(1, "x")], SCHEMA)
    data.write.format("deltalog").save(path)
    monkeypatch.setattr(writes, "snapshot_relation", failing)
    with pytest.raises(AfterCommitError, match=r"version 1 .* was committed.*the store went away") as caught:
        data.write.format("deltalog").mode("append").save(path)
    assert caught.value.version == 1
    assert log_of(path)[-1] == "00000000000000000001.json"
    with pytest.raises(OSError, match="the store went away") as unwritten:
        data.write.format("deltalog").mode("ignore").save(path)
    assert not isinstance(unwritten.value, DeltaError)
    with dropped(spark, "unregistered"):
        monkeypatch.setattr(NewEntry, "_put", failing)
        for statement in (
            f"CREATE TABLE unregistered (a INT) USING deltalog LOCATION '{path} 2'",
            f"CREATE TABLE unregistered USING deltalog LOCATION '{path} 3' AS SELECT 1 AS a",
        ):
            with pytest.raises(AfterCommitError, match=r"version 0 .* committed.*registering") as caught:
                spark.sql(statement)
            assert caught.value.version == 0
        assert log_of(f"{path} 2") == log_of(f"{path} 3") == ["00000000000000000000.json"]


@pytest.mark.parametrize("name", ["plain", "it's", "back\\slash"])
def test_the_hint_registers_the_committed_table(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    writer = (
        spark.createDataFrame([(1, "x")], SCHEMA).write.format("deltalog").option("path", f"{path} {name}")
    )
    with dropped(spark, "unregistered"):
        with monkeypatch.context() as failing:
            failing.setattr(NewEntry, "_put", lambda *_: 1 / 0)
            with pytest.raises(deltalog.errors.AfterCommitError, match="division by zero") as caught:
                writer.saveAsTable("unregistered")
        statement = str(caught.value.hint).removeprefix("register it with ")
        spark.sql(statement)
        assert [tuple(row) for row in spark.table("unregistered").collect()] == [(1, "x")]
