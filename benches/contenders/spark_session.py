"""Creates the Spark session of a process, and does the work that is the same for every format."""

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
"""The environment variable with the paths of the JVM connector's jars, separated by commas. It is set for processes
whose session uses the connector.
"""

CONNECTOR = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}

HEAP_STEP = 1 << 18
HEAP_WAIT_SECONDS = 1.5
"""A pause in seconds that is longer than the pauses of py4j's clean-up thread."""


def session() -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("deltalog benches")
        .config("spark.driver.memory", "6g")
        # Temporary files go into a directory that the benchmark removes at the end.
        .config("spark.local.dir", str(Path.cwd()))
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={Path.cwd()}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # The maximum number of tasks in which the JVM connector lists directories. The default is 10,000.
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
    """Adds the memory of the session's JVM to the measurement."""
    watch.also(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    return watch


def scan(watch: Watch, spark: SparkSession, format_: str, table: str) -> dict[str, Any]:
    """Runs two queries.

    The DataFrames exist beforehand, so a lap covers planning and execution, but not the work of finding the schema.
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
    """Reads Parquet files and writes their rows as a new table."""
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
    """Joins files up to a size, or orders their rows. The JVM connector and deltalog use the same Spark setting for
    the size.
    """
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
    """Measures two times that begin with a table's path: until the list of files for Spark's tasks exists, and until
    the tasks exist.

    No rows are read, because there are no data files. `forget` drops everything that the format caches about a table,
    so that no plan profits from earlier ones.
    """
    with_jvm(watch, spark)
    jvm: Any = spark._jvm
    none = jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.ArrayList())
    forget()
    before = heap_bytes(spark)
    with watch("plan"):
        location = _location(spark.read.format(format_).load(table))
        # A listing may be lazy. Hashing the path of every file makes sure that it is complete.
        location.listFiles(none, none).hashCode()
    # The listing itself has been freed. The remaining memory is used by caches of the format.
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
    """Collects garbage until the driver's heap stops shrinking, and returns its live bytes.

    The heap shrinks with a delay: py4j reports later to the JVM which objects Python has released, and Spark frees its
    own resources in a separate thread.
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
