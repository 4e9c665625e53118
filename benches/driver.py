"""Measures the memory that a DELETE with deletion vectors needs in a Spark driver with 512 MB: `benches/run.py driver`.

- Tables of 2,000,000, 20,000,000 and 200,000,000 rows of one column. A DELETE removes half of them, at scattered
  positions.
- Each DELETE runs in its own Spark application, whose executor is a separate process, so the driver only holds the
  data of the statement: bitmaps and lists of files.
- The output shows the peak of the driver's heap during the statement, the heap after a garbage collection, and the
  peak memory of the Python process, which commits.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

ROWS = (2_000_000, 20_000_000, 200_000_000)


class Found(NamedTuple):
    """The measurements of one statement. Sizes are in bytes."""

    deleted: int
    seconds: float
    heap_peak: int
    heap_live: int
    python_peak: int


def main(options: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="benches/run.py driver", description="Measures the memory that a DELETE needs in the driver."
    )
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="numbers of rows of the tables")
    arguments = parser.parse_args(options)
    shown = Table("rows", "deleted", "seconds", "peak of the heap", "live after", "peak of Python")
    for rows in arguments.rows:
        # Each statement runs in a new process, so earlier statements have no influence.
        with multiprocessing.get_context("spawn").Pool(1) as processes:
            found = processes.apply(_delete_half, (rows,))
        sizes = (found.heap_peak, found.heap_live, found.python_peak)
        shown.add_row(
            f"{rows:,}",
            f"{found.deleted:,}",
            f"{found.seconds:.1f}",
            *(f"{size >> 20} MiB" for size in sizes),
        )
    Console().print(shown)
    return 0


def _delete_half(rows: int) -> Found:
    from pyspark.sql import SparkSession

    import deltalog.spark

    settings = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local-cluster[1,2,2048]").appName("driver memory")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = deltalog.spark.enable(builder.getOrCreate())
    with tempfile.TemporaryDirectory() as path:
        writer = (
            spark.range(0, rows, 1, 8).write.format("deltalog").option("delta.enableDeletionVectors", "true")
        )
        writer.mode("append").save(path)
        jvm: Any = spark.sparkContext._jvm
        pools = [
            pool
            for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
            if str(pool.getType()) == "Heap memory"
        ]
        jvm.System.gc()
        for pool in pools:
            pool.resetPeakUsage()
        started = time.monotonic()
        deleted = spark.sql(f"DELETE FROM deltalog.`{path}` WHERE hash(id) % 2 = 0").collect()[0][0]
        seconds = time.monotonic() - started
        peak = sum(pool.getPeakUsage().getUsed() for pool in pools)
        jvm.System.gc()
        live = sum(pool.getUsage().getUsed() for pool in pools)
        left = (
            spark.read.format("deltalog").load(path).selectExpr("count_if(hash(id) % 2 = 0)").collect()[0][0]
        )
        if left != 0 or not rows * 0.49 < deleted < rows * 0.51:
            raise AssertionError(
                f"{deleted} of {rows} rows were deleted, and {left} were left that should be"
            )
        spark.stop()
    return Found(deleted, seconds, peak, live, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
