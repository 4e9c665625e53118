"""OPTIMIZE and REORG by the tasks of Spark: the same files as this process would write, row by row, beside others."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from deltalog import CommitConflictError, DeltaTable, InvalidArgumentError, MissingFileError
from deltalog._internal import SparkOptimize, delete_rows, optimize, update_rows
from deltalog.commit import commit_arguments
from deltalog.spark import tables
from deltalog.spark.sql import executors

VECTORS = "'delta.enableDeletionVectors' = 'true'"
TRACKING = "'delta.enableRowTracking' = 'true'"
COLUMNS = "a INT, p STRING, q TIMESTAMP, c CHAR(5), s STRUCT<x: INT, y: ARRAY<MAP<STRING, DATE>>>"
# Nulls, and values whose directories have escapes.
ROWS = (
    "id, CASE WHEN id % 3 = 0 THEN NULL WHEN id % 3 = 1 THEN 'a/b=c %é' ELSE 'z' END, "
    "TIMESTAMP '2024-02-29 01:02:03.000004', 'q', struct(id, array(map('k', DATE '1066-10-14'), null))"
)


@pytest.fixture(autouse=True)
def by_executors(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(executors.MIN_SIZE, "0")
    yield
    spark.conf.unset(executors.MIN_SIZE)


def create(spark: SparkSession, path: str, properties: str, partitions: str = "p, q") -> str:
    """Creates a table with four small files in each of three partitions; returns its name."""
    table = f"deltalog.`{path}`"
    by = f"PARTITIONED BY ({partitions})" if partitions else ""
    of = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING deltalog {by} {of}")
    for first in range(0, 120, 30):
        frame = spark.sql(f"SELECT {ROWS} FROM range({first}, {first + 30}, 1, 1)")
        frame.toDF("a", "p", "q", "c", "s").write.format("deltalog").mode("append").save(path)
    return table


def files(path: str) -> list[str]:
    return [uri.removeprefix("file://") for uri in DeltaTable(path).file_uris()]


def names(path: str) -> set[str]:
    """Returns the names of all files with data."""
    return {str(file.relative_to(path)) for file in Path(path).rglob("*.parquet") if "_delta_log" not in str(file)}


def is_by_spark(path: str) -> bool:
    """Returns whether Spark's writer has written all files: the core names files in another way."""
    return all("-c000.snappy.parquet" in uri for uri in files(path))


def contents(path: str) -> list[list[Any]]:
    """Returns the rows of each file in their order, without the ids that are the same for all."""
    paths = (uri.replace("%25", "%").replace("%20", " ") for uri in files(path))
    return sorted((pq.ParquetFile(file).read().to_pylist() for file in paths), key=str)


def rows(spark: SparkSession, table: str, columns: str = "*") -> list[str]:
    return sorted(map(str, spark.sql(f"SELECT {columns} FROM {table}").collect()))


def last_commit(path: str) -> list[dict[str, Any]]:
    version = DeltaTable(path).version()
    text = Path(path, f"_delta_log/{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def of_kind(actions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]


@pytest.mark.parametrize(
    ("properties", "partitions"),
    [
        ("", "p, q"),
        ("", ""),
        (VECTORS, "p, q"),
        (f"{VECTORS}, {TRACKING}", "p, q"),
        (f"{VECTORS}, 'delta.columnMapping.mode' = 'name'", "p, q"),
        (f"{VECTORS}, {TRACKING}, 'delta.columnMapping.mode' = 'id'", "p"),
        ("'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name'", "p, q"),
    ],
)
def test_the_files_are_those_of_the_driver(
    spark: SparkSession, tmp_path: Path, properties: str, partitions: str
) -> None:
    """The rows of each new file, and their order, are those of the file that the core writes."""
    path, other = str(tmp_path / "by spark"), str(tmp_path / "by the core")
    table = create(spark, path, properties, partitions)
    if VECTORS in properties:
        spark.sql(f"DELETE FROM {table} WHERE a % 7 = 3 OR a BETWEEN 30 AND 59 AND p = 'z'")
    else:
        spark.sql(f"DELETE FROM {table} WHERE a % 7 = 3")
    shutil.copytree(path, other)
    columns = "*, _metadata.row_id, _metadata.row_commit_version" if TRACKING in properties else "*"
    before = rows(spark, table, columns)
    [done] = spark.sql(f"OPTIMIZE {table}").collect()
    metrics, version = optimize(DeltaTable(other)._snapshot(), None, None, None, False, False, commit_arguments(None, None))
    assert version == DeltaTable(path).version()
    for name in ("numFilesAdded", "numFilesRemoved", "numBins", "totalConsideredFiles", "partitionsOptimized"):
        assert done.metrics[name] == metrics[name], name
    assert is_by_spark(path) and not is_by_spark(other)
    assert rows(spark, table, columns) == before
    assert contents(path) == contents(other)
    by_spark, by_core = (of_kind(last_commit(place), "add") for place in (path, other))
    for action in ("partitionValues", "baseRowId", "dataChange"):
        assert sorted(str(add.get(action)) for add in by_spark) == sorted(str(add.get(action)) for add in by_core)
    assert DeltaTable(path).verify().is_ok() if hasattr(DeltaTable(path), "verify") else True
    # A second run has nothing to do.
    assert spark.sql(f"OPTIMIZE {table}").collect()[0].metrics.numFilesAdded == 0
