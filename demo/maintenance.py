"""Maintenance of tables: merging small files, ordering rows, and undoing a mistake."""

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
"""The number of files into which silver is divided. Its rows would fit into one."""


@dataclass(frozen=True)
class Kept:
    """How many files of a table a filter keeps, and how many there are."""

    files: int
    of: int

    @property
    def skipped(self) -> float:
        """The share of the files that are not read."""
        return 1 - self.files / self.of


def compact(spark: SparkSession, path: str) -> DataFrame:
    """Merges small files into fewer, larger ones; returns the numbers of both."""
    metrics = deltalog.spark.DeltaTable.forPath(spark, path).optimize().executeCompaction()
    return metrics.selectExpr(
        "metrics.numFilesRemoved AS small_files",
        "metrics.numFilesAdded AS larger_files",
        "metrics.partitionsOptimized AS partitions",
    )


def kept(path: str) -> list[Kept]:
    """Returns which files of a table each of `FILTERS` keeps."""
    table = deltalog.DeltaTable(path)
    of = len(table.file_uris())
    return [Kept(len(table.file_uris(predicate)), of) for predicate in FILTERS]


def order(spark: SparkSession, path: str) -> None:
    """Orders the rows of a table, so that a filter on any of `ORDERED_BY` reads a few files."""
    size = deltalog.spark.DeltaTable.forPath(spark, path).detail().collect()[0]["sizeInBytes"]
    deltalog.DeltaTable(path).optimize.z_order(list(ORDERED_BY), target_size=size // _FILES)


def blunder(spark: SparkSession, path: str) -> None:
    """Runs an UPDATE whose WHERE was forgotten."""
    spark.sql(f"UPDATE deltalog.`{path}` SET arr_delay = 0")


def undo(spark: SparkSession, path: str, version: int) -> DataFrame:
    """Restores `version` as the newest version; returns how many files are added and removed."""
    restored = spark.sql(f"RESTORE TABLE deltalog.`{path}` TO VERSION AS OF {version}")
    return restored.select("num_restored_files", "num_removed_files", "num_of_files_after_restore")
