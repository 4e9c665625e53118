"""Errors can be caught both as errors of deltalog and as errors of PySpark."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import deltalog.errors as own
import deltalog.spark
from deltalog.spark.exceptions import as_pyspark_error
from deltalog.tables import DeltaTable


def check(error: Any, kind: type[own.DeltaError], sparks: type[PySparkException]) -> None:
    assert isinstance(error, kind)
    assert isinstance(error, sparks)
    assert type(error).__name__ == kind.__name__
    assert str(error) == error.getMessage() == error.args[-1]
    assert error.getCondition() is None
    assert error.getSqlState() is None
    assert error.getQueryContext() == []
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again), again.table) == (type(error), str(error), error.table)


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
        lambda spark, path: spark.read.format("deltalog").option("deltalog.command", "detail").load(path),
    ),
    "limit": (own.InvalidArgumentError, lambda spark, path: DeltaTable.forPath(spark, path).history(0)),
    "condition": (own.InvalidArgumentError, lambda spark, path: DeltaTable.forPath(spark, path).count("n >")),
    "statement": (
        own.UnsupportedFeatureError,
        lambda spark, path: spark.sql(f"ALTER TABLE deltalog.`{path}` REPLACE COLUMNS (z INT)"),
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


@pytest.mark.parametrize("name", [name for name in own.__all__ if name != "DeltaError"])
def test_every_error_can_be_a_pyspark_exception(name: str) -> None:
    error = getattr(own, name)("what happened")
    error.table = "file:///t"
    check(as_pyspark_error(error), getattr(own, name), PySparkException)
    assert as_pyspark_error(ValueError("else")).__class__ is ValueError


def test_delta_table_is_also_in_deltalog_tables() -> None:
    assert DeltaTable is deltalog.spark.DeltaTable
