"""pandas on Spark (`pyspark.pandas`) reads and writes tables with its functions for Delta, such as `read_delta`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable

# Even PySpark 4.3 imports names that pandas 3 has removed. Older PySpark releases are tested with pandas 2.
pytestmark = pytest.mark.skipif(
    int(pd.__version__.split(".")[0]) > 2, reason="pandas on Spark does not work with pandas 3"
)

COLUMNS = {"k": [1, 2, 3], "day": ["mon", "mon", "tue"], "amount": [1.5, None, 3.0]}


@pytest.fixture(scope="module")
def ps(spark: SparkSession) -> Iterator[Any]:
    """Returns the module `pyspark.pandas`, in a session in which the format is also called `delta`."""
    deltalog.spark.enable(spark, alias_delta=True)
    with warnings.catch_warnings():
        # The module warns if no index column is named, and about versions of pandas.
        warnings.simplefilter("ignore")
        import pyspark.pandas

        # Spark 4.0 does not support pandas in ANSI mode.
        with pyspark.pandas.option_context("compute.fail_on_ansi_mode", False):
            yield pyspark.pandas


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    yield "of_pandas"
    spark.sql("DROP TABLE IF EXISTS of_pandas")


def records(frame: Any) -> list[tuple[Any, ...]]:
    """Returns the rows of a frame, with None instead of pandas' NaN."""
    found = frame.to_pandas().sort_values(next(iter(frame.columns)))
    return [
        tuple(None if value != value else value for value in row)
        for row in found.itertuples(index=False, name=None)
    ]


ROWS = [(1, "mon", 1.5), (2, "mon", None), (3, "tue", 3.0)]


def test_a_frame_is_written_and_read(ps: Any, path: str) -> None:
    ps.DataFrame(COLUMNS).to_delta(path)
    found = ps.read_delta(path)
    assert list(found.columns) == ["k", "day", "amount"]
    assert records(found) == ROWS
    assert DeltaTable(path).version() == 0


def test_modes(ps: Any, path: str) -> None:
    frame = ps.DataFrame(COLUMNS)
    frame.to_delta(path, mode="error")
    frame[frame.k == 3].to_delta(path, mode="a")
    assert sorted(ps.read_delta(path)["k"].to_numpy()) == [1, 2, 3, 3]
    frame[frame.k == 1].to_delta(path, mode="ignore")
    assert DeltaTable(path).version() == 1
    frame[frame.k == 1].to_delta(path, mode="overwrite")
    assert records(ps.read_delta(path)) == ROWS[:1]
    with pytest.raises(deltalog.errors.TableAlreadyExistsError):
        frame.to_delta(path, mode="error")


def test_index_columns(ps: Any, path: str) -> None:
    frame = ps.DataFrame(COLUMNS).set_index(["day", "k"])
    frame.to_delta(path, index_col=["day", "k"])
    found = ps.read_delta(path, index_col=["day", "k"])
    assert found.index.names == ["day", "k"]
    assert list(found.columns) == ["amount"]
    assert found.to_pandas()["amount"].dropna().to_dict() == {("mon", 1): 1.5, ("tue", 3): 3.0}
    assert list(ps.read_delta(path).columns) == ["day", "k", "amount"]


def test_partitions_and_replaced_rows(ps: Any, path: str) -> None:
    ps.DataFrame(COLUMNS).to_delta(path, partition_cols=["day"])
    assert DeltaTable(path).metadata().partition_columns == ["day"]
    new = ps.DataFrame({"k": [4], "day": ["tue"], "amount": [4.0]})
    new.to_delta(path, mode="overwrite", replaceWhere="day = 'tue'")
    assert records(ps.read_delta(path)) == [*ROWS[:2], (4, "tue", 4.0)]


def test_options_of_a_writer(ps: Any, path: str) -> None:
    ps.DataFrame({"k": [1]}).to_delta(path)
    ps.DataFrame({"k": [2], "more": ["x"]}).to_delta(
        path, mode="append", mergeSchema=True, userMetadata="mine"
    )
    assert records(ps.read_delta(path)) == [(1, None), (2, "x")]
    assert DeltaTable(path).history(1)[0]["userMetadata"] == "mine"


def test_versions_and_times(ps: Any, spark: SparkSession, path: str) -> None:
    ps.DataFrame({"k": [1]}).to_delta(path)
    ps.DataFrame({"k": [2]}).to_delta(path, mode="append")
    assert records(ps.read_delta(path, version=0)) == [(1,)]
    assert records(ps.read_delta(path, version="1")) == [(1,), (2,)]
    [first, _] = sorted(commit["timestamp"] for commit in DeltaTable(path).history())
    time = datetime.fromtimestamp(first / 1000, timezone.utc).isoformat(timespec="milliseconds")
    assert records(ps.read_delta(path, timestamp=time)) == [(1,)]
    with pytest.raises(deltalog.errors.VersionNotFoundError):
        ps.read_delta(path, version=7)


def test_other_names_for_the_format(ps: Any, path: str) -> None:
    ps.DataFrame(COLUMNS).spark.to_spark_io(path, format="deltalog", mode="overwrite")
    found = ps.read_spark_io(path, format="deltalog", index_col="k", versionAsOf=0)
    assert found.index.name == "k"
    assert found["day"].to_pandas().to_dict() == {1: "mon", 2: "mon", 3: "tue"}
    assert records(ps.read_spark_io(path, format="delta")) == ROWS


def test_tables_of_the_catalog(ps: Any, name: str) -> None:
    frame = ps.DataFrame(COLUMNS)
    frame.spark.to_table(name, format="delta", mode="overwrite", partition_cols="day")
    frame.set_index("k").to_table(name, format="delta", mode="append", index_col="k")
    assert records(ps.read_table(name)) == sorted(ROWS * 2, key=str)
    assert ps.read_table(name, index_col="k").index.name == "k"
    with pytest.raises(AnalysisException, match="already exists"):
        frame.to_table(name, format="delta", mode="error")
    assert ps.sql("SELECT count(*) AS n FROM {t}", t=ps.read_table(name))["n"].to_numpy() == [6]


def test_what_pandas_computes(ps: Any, path: str) -> None:
    """A frame of a table is a query plan. Groups, joins and computed columns use the version of the table with which
    the frame was created.
    """
    ps.DataFrame(COLUMNS).to_delta(path)
    frame = ps.read_delta(path)
    assert frame.groupby("day")["k"].sum().to_pandas().to_dict() == {"mon": 3, "tue": 3}
    joined = frame.merge(ps.DataFrame({"day": ["tue"], "x": [7]}), on="day")
    assert records(joined[["k", "x"]]) == [(3, 7)]
    frame["doubled"] = frame["k"] * 2
    frame.to_delta(path, mode="overwrite", overwriteSchema=True)
    assert records(ps.read_delta(path)[["k", "doubled"]]) == [(1, 2), (2, 4), (3, 6)]


def test_rows_changed_by_sql(ps: Any, spark: SparkSession, path: str) -> None:
    ps.DataFrame(COLUMNS).to_delta(path)
    before = ps.read_delta(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE k = 2")
    assert records(ps.read_delta(path)) == [ROWS[0], ROWS[2]]
    assert records(before) == ROWS
