"""Creates several kinds of tables for tests of statements, and reads their rows."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from deltalog import DeltaTable

Row = tuple[int | None, int, str | None]
Rows = list[Row]

VECTORS = {"delta.enableDeletionVectors": "true"}
# For each kind of table: its properties, and whether it is partitioned by `p`.
KINDS: dict[str, tuple[dict[str, str], bool]] = {
    "vectors": (VECTORS, False),
    "rewriting": ({}, False),
    "partitions with vectors": (VECTORS, True),
    "partitions": ({}, True),
    "mapped with vectors": ({**VECTORS, "delta.columnMapping.mode": "name"}, True),
    "tracked with vectors": ({**VECTORS, "delta.enableRowTracking": "true"}, False),
    "tracked": ({"delta.enableRowTracking": "true"}, True),
    "iceberg": ({"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}, True),
}
OLD: Rows = [(None if i % 50 == 7 else i, i % 3, None if i % 11 == 0 else f"s{i}") for i in range(300)]
# The kinds that are tested with every Spark release. What distinguishes the other kinds does not depend on the release.
BASIC_KINDS = ("vectors", "rewriting")
FAILING = "CAST(if(id = 250, raise_error('boom'), 's') AS STRING)"
"""A SQL expression for column `s` that makes the job fail at one row."""


def created(spark: SparkSession, path: str, kind: str) -> str:
    properties, is_partitioned = KINDS[kind]
    data = spark.createDataFrame(OLD, "id long, p int, s string").repartitionByRange(3, "p", "id")
    writer = data.write.format("deltalog").options(**properties)
    (writer.partitionBy("p") if is_partitioned else writer).save(path)
    return f"deltalog.`{path}`"


def rows(path: str) -> Rows:
    table = DeltaTable(path).to_pyarrow_table(columns=["id", "p", "s"])
    return ordered(zip(*(table[name].to_pylist() for name in ("id", "p", "s")), strict=True))


def ordered(found: Iterable[Any]) -> Rows:
    return sorted(map(tuple, found), key=str)


def check(spark: SparkSession, path: str, expected: Rows) -> None:
    """Checks that the Rust core and Spark read the same rows."""
    assert rows(path) == ordered(expected)
    assert ordered(spark.read.format("deltalog").load(path).select("id", "p", "s").collect()) == ordered(
        expected
    )


@contextmanager
def in_one_task(spark: SparkSession) -> Iterator[None]:
    """Makes a job read a small table in a single task. With several tasks, one might end just as another fails."""
    spark.conf.set("spark.sql.files.minPartitionNum", "1")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.files.minPartitionNum")


def files(path: str) -> list[str]:
    found = (file.relative_to(path) for file in Path(path).rglob("*") if file.is_file())
    return sorted(str(file) for file in found if "_delta_log" not in file.parts)


def metrics(path: str) -> dict[str, str]:
    found: dict[str, str] = DeltaTable(path).history(1)[0]["operationMetrics"]
    return found
