"""A process with a Spark session and the JVM connector, which runs SQL. Its arguments are the connector's jars.

Standard input has one request per line:

- `{"sql": TEXT, "to": FILE or null}` runs a statement. If `to` is a file, the result is written to it in Arrow's
  format.
- `{"table": PATH, "versions": NUMBERS, "to": FILE}` writes the rows of each of these versions of a table to an Arrow
  file `FILE.NUMBER`. It also writes a JSON array to `FILE`: the protocol, metadata, application transactions and
  domains of each version as an object.
- `{"write_stream": DIRECTORY, "to": TABLE, "checkpoint": PATH, "by_window": BOOLEAN}` writes the stream that
  `stream_of_files` returns to a table.
- `{"stream": PATH, "options": {}, "checkpoint": PATH, "column": EXPRESSION, "to": FILE}` continues a stream until it
  has read everything. It writes a JSON array to `FILE`, even if the stream fails: the values of the expression in each
  batch as an array.

Standard output has one answer per line: `ok` or `error: …`. Spark's own output goes to standard error.

In SQL, the function `wait_at(VALUE, MEETING)` creates the file `MEETING.started`, waits for the file `MEETING.done`
and returns the value.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
from pyspark.sql import DataFrame, SparkSession, functions


def builder() -> SparkSession.Builder:
    """Returns a session builder with the settings that do not depend on the connector."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.databricks.delta.properties.defaults.enableDeletionVectors", "false")
        .config("spark.sql.session.timeZone", "UTC")
        # The tables are small, so compiling code for a query would take longer than running the query.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        # The maximum number of tasks in which VACUUM lists directories. The default is 10,000.
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
        # By default, the state that Spark and the connector keep about thousands of statements would fill 1 GiB.
        .config("spark.driver.memory", "3g")
        .config("spark.ui.retainedJobs", "10")
        .config("spark.ui.retainedStages", "10")
        .config("spark.sql.ui.retainedExecutions", "10")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )


def with_connector(builder: SparkSession.Builder, jars: list[str]) -> SparkSession.Builder:
    return (
        builder.config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false")
    )


def write(frame: DataFrame, file: str) -> None:
    table = frame.toArrow()
    with pa.OSFile(file, "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def write_versions(spark: SparkSession, path: str, versions: list[int], file: str) -> None:
    """Writes what the connector reads from each version. It uses the connector's snapshot objects, because SQL does
    not return everything.
    """
    logs = spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
    log = logs.forTable(spark._jsparkSession, path)
    states = []
    for version in versions:
        write(spark.read.format("delta").option("versionAsOf", version).load(path), f"{file}.{version}")
        # The default values of parameters in Scala are methods in the JVM.
        defaults = (getattr(log, f"getSnapshotAt$default${number}")() for number in (2, 3, 4))
        snapshot = log.getSnapshotAt(version, *defaults)
        applications, domains = snapshot.setTransactions(), snapshot.domainMetadata()
        states.append(
            {
                "protocol": json.loads(snapshot.protocol().json()),
                "metadata": json.loads(snapshot.metadata().json()),
                "applications": [
                    json.loads(applications.apply(number).json()) for number in range(applications.size())
                ],
                "domains": [json.loads(domains.apply(number).json()) for number in range(domains.size())],
            }
        )
    Path(file).write_text(json.dumps(states))


def stream_of_files(spark: SparkSession, directory: str, *, by_window: bool) -> DataFrame:
    """Returns a stream with one batch per file. A batch has the file's rows, or the number of rows per time window."""
    files = (
        spark.readStream.schema("id long, time timestamp").option("maxFilesPerTrigger", 1).parquet(directory)
    )
    if not by_window:
        return files
    late = files.withWatermark("time", "10 seconds")
    return late.groupBy(functions.window("time", "20 seconds")).count().selectExpr("window.start", "count")


def write_stream(spark: SparkSession, request: dict[str, Any]) -> None:
    frame = stream_of_files(spark, request["write_stream"], by_window=request["by_window"])
    writer = frame.writeStream.format("delta").option("checkpointLocation", request["checkpoint"])
    writer.trigger(availableNow=True).start(request["to"]).awaitTermination()


def write_batches(spark: SparkSession, request: dict[str, Any]) -> None:
    """Runs a stream and writes the values in its batches."""
    found: dict[int, list[object]] = {}

    def each(rows: DataFrame, number: int) -> None:
        found[number] = sorted(row[0] for row in rows.collect())

    frame = spark.readStream.format("delta").options(**request["options"]).load(request["stream"])
    writer = (
        frame.selectExpr(request["column"])
        .writeStream.foreachBatch(each)
        .option("checkpointLocation", request["checkpoint"])
    )
    try:
        writer.trigger(availableNow=True).start().awaitTermination()
    finally:
        Path(request["to"]).write_text(json.dumps([found[number] for number in sorted(found)]))


def wait_at(value: int, meeting: str) -> int:
    done = Path(f"{meeting}.done")
    if not done.exists():
        Path(f"{meeting}.started").touch()
    while not done.exists():
        time.sleep(0.01)
    return value


def main() -> None:
    # The connector prints some errors to standard output, which must contain only answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = with_connector(builder(), sys.argv[1:]).getOrCreate()
    spark.udf.register("wait_at", wait_at, "bigint")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "stream" in request:
                write_batches(spark, request)
            elif "versions" in request:
                write_versions(spark, request["table"], request["versions"], request["to"])
            elif "write_stream" in request:
                write_stream(spark, request)
            else:
                frame = spark.sql(request["sql"])
                if request["to"] is not None:
                    write(frame, request["to"])
            answer = "ok"
        except Exception as error:  # noqa: BLE001 (the other side raises it)
            answer = f"error: {error}".replace("\n", " ")
        answers.write(answer + "\n")


if __name__ == "__main__":
    main()
