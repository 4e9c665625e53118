"""Maintains tables: merges small files, orders rows, and undoes a mistake."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

import deltalog
import deltalog.spark

ORDERED_BY = ("date", "dest", "tailnum")
"""The columns of silver that queries filter by."""

FILTERS = (
    "date = DATE '2013-07-04'",
    "dest = 'HNL'",
    "tailnum = 'N14228'",
)

_FILES = 64
"""The number of files into which the silver table is divided to show skipping. Its rows would fit into one file."""


@dataclass(frozen=True)
class Kept:
    """How many files of a table a filter keeps, and how many files the table has."""

    files: int
    of: int

    @property
    def skipped(self) -> float:
        """The share of the files that need not be read."""
        return 1 - self.files / self.of


def compact(spark: SparkSession, path: str) -> DataFrame:
    """Merges small files into fewer, larger files. Returns how many files there were before and after."""
    metrics = deltalog.spark.DeltaTable.forPath(spark, path).optimize().executeCompaction()
    return metrics.selectExpr(
        "metrics.numFilesRemoved AS small_files",
        "metrics.numFilesAdded AS larger_files",
        "metrics.partitionsOptimized AS partitions",
    )


def kept(path: str) -> list[Kept]:
    """Returns, for each of `FILTERS`, how many files of a table it keeps."""
    table = deltalog.DeltaTable(path)
    of = len(table.file_uris())
    return [Kept(len(table.file_uris(predicate)), of) for predicate in FILTERS]


def order(spark: SparkSession, path: str) -> None:
    """Orders the rows of a table, so that a filter on any column of `ORDERED_BY` reads only a few files."""
    size = deltalog.spark.DeltaTable.forPath(spark, path).detail().collect()[0]["sizeInBytes"]
    deltalog.DeltaTable(path).optimize.z_order(list(ORDERED_BY), target_size=size // _FILES)


def blunder(spark: SparkSession, path: str) -> None:
    """Runs an UPDATE without the WHERE clause that it should have had."""
    spark.sql(f"UPDATE deltalog.`{path}` SET arr_delay = 0")


def undo(spark: SparkSession, path: str, version: int) -> DataFrame:
    """Makes `version` the current state again with RESTORE. Returns how many files were added and removed."""
    restored = spark.sql(f"RESTORE TABLE deltalog.`{path}` TO VERSION AS OF {version}")
    return restored.select("num_restored_files", "num_removed_files", "num_of_files_after_restore")
