"""A Spark session with the JVM connector in a separate process, which runs SQL. The jars are the arguments.

Standard input has one request per line: `{"sql": TEXT, "to": FILE or null}`; with `to` the result is written
there as an Arrow file. Standard output has one answer per line: `ok` or `error: …`.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pyarrow.ipc
from pyspark.sql import SparkSession


def session(jars: list[str]) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.databricks.delta.properties.defaults.enableDeletionVectors", "false")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def main() -> None:
    spark = session(sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            frame = spark.sql(request["sql"])
            if request["to"] is not None:
                table = frame.toArrow()
                with (
                    pa.OSFile(request["to"], "wb") as sink,
                    pyarrow.ipc.new_file(sink, table.schema) as writer,
                ):
                    writer.write_table(table)
            answer = "ok"
        except Exception as error:  # noqa: BLE001 (the other side raises it)
            answer = f"error: {error}".replace("\n", " ")
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
