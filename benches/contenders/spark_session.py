"""The Spark session of a process, and the work that is the same for every format."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from benches.watch import Watch

JARS = "DELTALOG_BENCH_JARS"
"""Names the jars of the JVM connector, separated by commas, in the environment of a process whose session uses it.
"""

CONNECTOR = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}

HEAP_STEP = 1 << 18
HEAP_WAIT_SECONDS = 1.5
"""Longer than the sleep of py4j's thread."""


def session() -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("deltalog benches")
        .config("spark.driver.memory", "6g")
        # Temporary files go into a directory that the runner removes.
        .config("spark.local.dir", str(Path.cwd()))
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={Path.cwd()}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # The number of tasks in which the JVM connector lists directories. The default is 10,000.
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    jars = os.environ.get(JARS)
    if jars:
        builder = builder.config("spark.jars", jars)
        for name, value in CONNECTOR.items():
            builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def with_jvm(watch: Watch, spark: SparkSession) -> Watch:
    """Counts the memory of the session's JVM."""
    watch.also(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    return watch


def scan(watch: Watch, spark: SparkSession, format_: str, table: str) -> dict[str, Any]:
    """Runs two queries.

    The frames exist beforehand, so a lap covers planning and execution, but not what a reader does to learn
    the schema.
    """
    with_jvm(watch, spark)
    frame = spark.read.format(format_).load(table)
    query = frame.where("i1 < 500000").agg(F.sum("d3"), F.count("*"))
    with watch("filter + sum"):
        total, count = query.collect()[0]
    everything = spark.read.format(format_).load(table)
    with watch("all columns"):
        everything.write.format("noop").mode("overwrite").save()
    return {"sum": total, "rows": count}


def write(watch: Watch, spark: SparkSession, format_: str, table: str, target: str) -> dict[str, Any]:
    """Reads Parquet files and writes them elsewhere."""
    with_jvm(watch, spark)
    frame = spark.read.parquet(table)
    with watch("write"):
        frame.write.format(format_).save(target)
    files = [path for path in Path(target).rglob("*.parquet") if "_delta_log" not in path.parts]
    return {"rows": sum(pq.read_metadata(path).num_rows for path in files)}


def vacuum(watch: Watch, spark: SparkSession, format_name: str, table: str, copy: str) -> dict[str, Any]:
    with watch("dry run"):
        found = spark.sql(f"VACUUM {format_name}.`{table}` DRY RUN").collect()
    with watch("delete"):
        spark.sql(f"VACUUM {format_name}.`{copy}`").collect()
    left = sum(1 for file in Path(copy).rglob("left-*") if file.is_file())
    return {"found": sum("/left-" in row.path for row in found), "left": left}


def optimize(
    watch: Watch, spark: SparkSession, format_: str, table: str, size: int, order: str = ""
) -> dict[str, Any]:
    """Joins files up to a size, or orders their rows. The setting is the same for the JVM connector and deltalog."""
    with_jvm(watch, spark)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", size)
    with watch("z-order" if order else "optimize"):
        spark.sql(f"OPTIMIZE {format_}.`{table}` {order}").collect()
    rows = spark.read.format(format_).load(table)
    [found] = rows.agg(F.count("*").alias("rows"), F.sum("i5").alias("sum")).collect()
    return {"rows": found["rows"], "sum": found["sum"]}


def convert(watch: Watch, spark: SparkSession, format_: str, table: str) -> dict[str, Any]:
    with_jvm(watch, spark)
    with watch("convert"):
        spark.sql(f"CONVERT TO DELTA parquet.`{table}` PARTITIONED BY (part INT)").collect()
    made = spark.read.format(format_).load(table)
    return {"files": len(made.inputFiles()), "rows": made.count()}


def plan(
    watch: Watch, spark: SparkSession, format_: str, table: str, forget: Callable[[], None]
) -> dict[str, Any]:
    """Measures from the path to the list of files for Spark's tasks, and from the path to the tasks.

    Nothing is read, because there are no data files. Each plan is a first one: `forget` drops what the format
    keeps of a table.
    """
    with_jvm(watch, spark)
    jvm: Any = spark._jvm
    none = jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.ArrayList())
    forget()
    before = heap_bytes(spark)
    with watch("plan"):
        location = _location(spark.read.format(format_).load(table))
        # A listing may be lazy, so the hash covers the path of every file.
        location.listFiles(none, none).hashCode()
    # The listing itself is freed. The remaining memory is what the source and its connector keep of the table.
    watch.note("plan", "heap_bytes", heap_bytes(spark) - before)
    files = len(location.inputFiles())
    forget()
    with watch("tasks"):
        tasks = spark.read.format(format_).load(table)._jdf.queryExecution().toRdd().getNumPartitions()
    return {"files": files, "tasks": tasks}


def scan_vectors(watch: Watch, spark: SparkSession, format_: str, table: str) -> dict[str, Any]:
    """Runs the two queries of `scan` on version 0, which has no deletion vectors, and on version 1, where
    each file has one.
    """
    with_jvm(watch, spark)
    answer: dict[str, Any] = {}
    for version, which in enumerate(("without vectors", "with vectors")):
        reader = spark.read.format(format_).option("versionAsOf", version)
        answer |= _two_queries(watch, lambda reader=reader: reader.load(table), which)  # type: ignore[misc]
    return answer


def scan_files(watch: Watch, spark: SparkSession, table: str) -> dict[str, Any]:
    """Runs the same queries on the table's data files, as plain Parquet."""
    with_jvm(watch, spark)
    return _two_queries(
        watch, lambda: spark.read.option("pathGlobFilter", "*.parquet").parquet(table), "without vectors"
    )


def _two_queries(watch: Watch, load: Callable[[], DataFrame], which: str) -> dict[str, Any]:
    """Reads all columns into Spark rows and drops them. The JVM connector refuses to copy a table with
    deletion vectors into the `noop` sink.
    """
    query = load().where("i1 < 500000").agg(F.sum("d3"), F.count("*"))
    with watch(f"filter + sum, {which}"):
        total, count = query.collect()[0]
    everything = load()
    with watch(f"all columns, {which}"):
        everything._jdf.queryExecution().toRdd().count()
    return {f"sum {which}": total, f"rows {which}": count}


def heap_bytes(spark: SparkSession) -> int:
    """Returns the live bytes of the driver's heap after collections, once they have stopped falling.

    py4j tells the JVM with a delay what Python has released, and Spark cleans up in a separate thread what
    the JVM has released.
    """
    jvm: Any = spark._jvm
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    used = sys.maxsize
    while True:
        before = used
        jvm.java.lang.System.gc()
        used = int(memory.getHeapMemoryUsage().getUsed())
        if used > before - HEAP_STEP:
            return used
        time.sleep(HEAP_WAIT_SECONDS)


def _location(frame: DataFrame) -> Any:
    execution = frame._jdf.queryExecution()
    execution.executedPlan()
    return execution.optimizedPlan().collectLeaves().head().relation().location()
