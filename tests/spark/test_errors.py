"""Errors can be caught both as errors of deltalog and as errors of PySpark."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import deltalog.errors as own
import deltalog.spark
from deltalog.spark.exceptions import as_pyspark_error
from deltalog.spark.sql_states import sql_state
from deltalog.tables import DeltaTable


def check(error: Any, kind: type[own.DeltaError], sparks: type[PySparkException]) -> None:
    assert isinstance(error, kind)
    assert isinstance(error, sparks)
    assert type(error).__name__ == kind.__name__
    assert str(error) == error.getMessage() == error.args[-1]
    assert error.getCondition() is None
    assert error.getSqlState() == sql_state(error)
    assert error.getQueryContext() == []
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again), again.table) == (type(error), str(error), error.table)


def test_errors_have_an_sqlstate() -> None:
    """Errors have an SQLSTATE. If the JVM connector raises the same error, the SQLSTATE is the same."""
    for kind, state in {
        own.CommitConflictError: "2D521",
        own.NotATableError: "42P01",
        own.InternalError: "XXKDS",
    }.items():
        error: Any = as_pyspark_error(kind("text"))
        assert error.getSqlState() == state


WRONG: dict[str, tuple[type[own.DeltaError], Callable[[SparkSession, str], Any]]] = {
    "read without a table": (
        own.NotATableError,
        lambda spark, path: spark.read.format("deltalog").load(path + " 2"),
    ),
    "name without a table": (own.NotATableError, lambda spark, path: spark.table(f"deltalog.`{path} 2`")),
    "forPath without a table": (
        own.NotATableError,
        lambda spark, path: DeltaTable.forPath(spark, path + " 2"),
    ),
    "version": (
        own.VersionNotFoundError,
        lambda spark, path: spark.read.format("deltalog").option("versionAsOf", 7).load(path),
    ),
    "option": (
        own.InvalidArgumentError,
        lambda spark, path: spark.read.format("deltalog").option("versionAsOf", "one").load(path),
    ),
    "option of Connect": (
        own.InvalidArgumentError,
        lambda spark, path: spark.read.format("deltalog").option("deltalog.positions", "true").load(path),
    ),
    "limit": (own.InvalidArgumentError, lambda spark, path: DeltaTable.forPath(spark, path).history(0)),
    "condition": (own.InvalidArgumentError, lambda spark, path: DeltaTable.forPath(spark, path).count("n >")),
    "statement": (
        own.UnsupportedFeatureError,
        lambda spark, path: spark.sql(f"ALTER TABLE deltalog.`{path}` RENAME COLUMN id TO z"),
    ),
    "schema": (
        own.SchemaMismatchError,
        lambda spark, path: (
            spark.sql("SELECT 'x' AS other").write.format("deltalog").mode("append").save(path)
        ),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_raise_analysis_exceptions(spark: SparkSession, path: str, name: str) -> None:
    spark.range(2).write.format("deltalog").save(path)
    kind, call = WRONG[name]
    with pytest.raises(AnalysisException) as caught:
        call(spark, path)
    check(caught.value, kind, AnalysisException)
    with pytest.raises(kind):
        call(spark, path)


def test_damaged_tables_raise_pyspark_exceptions_but_no_analysis_exceptions(
    spark: SparkSession, path: str
) -> None:
    spark.range(2).write.format("deltalog").save(path)
    Path(path, "_delta_log", f"{0:020}.json").write_text("{damaged")
    with pytest.raises(own.CorruptLogError) as caught:
        spark.read.format("deltalog").load(path)
    check(caught.value, own.CorruptLogError, PySparkException)
    assert not isinstance(caught.value, AnalysisException)


ERRORS = [
    name for name in own.__all__ if issubclass(getattr(own, name), own.DeltaError) and name != "DeltaError"
]


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_can_be_a_pyspark_exception(name: str) -> None:
    error = getattr(own, name)("what happened")
    error.table = "file:///t"
    check(as_pyspark_error(error), getattr(own, name), PySparkException)
    assert as_pyspark_error(ValueError("else")).__class__ is ValueError


def test_delta_table_is_also_in_deltalog_tables() -> None:
    assert DeltaTable is deltalog.spark.DeltaTable


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda spark, table: table.delete(3), "condition"),
        (lambda spark, table: table.history("x"), "limit"),
        (lambda spark, table: table.optimize().where(3), "partitionFilter"),
        (lambda spark, table: table.update("true", 3), "set"),
        (lambda spark, table: table.merge(None, "true"), "source"),
        (lambda spark, table: table.merge(spark.range(1), 3), "condition"),
        (lambda spark, table: table.merge(spark.range(1), "true").whenMatchedDelete(3), "condition"),
        (lambda spark, table: table.count(3), "condition"),
        (lambda spark, table: table.min_max(["id"]), "column"),
        (lambda spark, table: DeltaTable.forPath(spark, 3), "path"),  # type: ignore[arg-type]
        (lambda spark, table: DeltaTable.forPath(None, "x"), "sparkSession"),  # type: ignore[arg-type]
        (lambda spark, table: DeltaTable.forName(spark, 3), "tableOrViewName"),  # type: ignore[arg-type]
        (lambda spark, table: deltalog.spark.enable(None), "spark"),  # type: ignore[arg-type]
        (lambda spark, table: deltalog.spark.enable(spark, alias_delta="yes"), "alias_delta"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_named(spark: SparkSession, tmp_path: Path, wrong: Any, name: str) -> None:
    path = str(tmp_path)
    spark.range(2).write.format("deltalog").save(path)
    with pytest.raises(own.InvalidArgumentError, match=f"^{name} cannot be") as caught:
        wrong(spark, DeltaTable.forPath(spark, path))
    check(caught.value, own.InvalidArgumentError, AnalysisException)
    assert caught.value.hint


def test_files_have_the_codec_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's tasks and the driver both write files with the table's codec."""
    path = str(tmp_path)
    rows = spark.range(9).write.format("deltalog")
    rows.option("delta.parquet.compression.codec", "ZSTD").save(path)
    DeltaTable.forPath(spark, path).update("id = 3", {"id": "10"})
    found = [
        parquet.ParquetFile(file).metadata.row_group(0).column(0).compression
        for file in tmp_path.rglob("*.parquet")
        if "_delta_log" not in str(file)
    ]
    assert len(found) > 1
    assert set(found) == {"ZSTD"}
