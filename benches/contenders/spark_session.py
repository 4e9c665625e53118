"""The Spark session of a process, and the work that is the same for every format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from benches.watch import Watch

JARS = "DELTALOG_BENCH_JARS"
"""Names the jars of the JVM connector, separated by commas, in the environment of a process whose session shall have it."""

CONNECTOR = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def session() -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("deltalog benches")
        .config("spark.driver.memory", "6g")
        # The process ends where its temporary files are: in a directory that the runner removes.
        .config("spark.local.dir", str(Path.cwd()))
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={Path.cwd()}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
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
    """Two queries. The frames exist before, so that a lap holds planning and execution, but not what a reader may do to learn the schema."""
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


def plan(watch: Watch, spark: SparkSession, format_: str, table: str) -> dict[str, Any]:
    """From the path to the `PartitionDirectory`s that Spark makes tasks of, all files. Nothing is read, for there are no data files."""
    with_jvm(watch, spark)
    none = spark._jvm.org.apache.spark.api.python.PythonUtils.toSeq(spark._jvm.java.util.ArrayList())  # type: ignore[union-attr]
    with watch("plan"):
        location = _location(spark.read.format(format_).load(table))
        location.listFiles(none, none)
    return {"files": len(location.inputFiles())}


def _location(frame: DataFrame) -> Any:
    execution = frame._jdf.queryExecution()
    execution.executedPlan()
    return execution.optimizedPlan().collectLeaves().head().relation().location()
