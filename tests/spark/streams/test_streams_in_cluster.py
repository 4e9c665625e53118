"""A stream whose rows are read by executors in other processes."""

import sys
from pathlib import Path

import pytest

from tests.spark.processes import run_python

SCRIPT = """
    import os
    from pathlib import Path
    from pyspark.sql import SparkSession
    import deltalog.spark

    root = os.environ["ROOT"]
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    spark = deltalog.spark.enable(builder.config("spark.executor.memory", "512m").getOrCreate())
    path = root + "/table"
    spark.sql(
        f"CREATE TABLE deltalog.`{path}` (id BIGINT) USING deltalog "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    for first in (0, 10):
        spark.range(first, first + 10, 1, 2).write.format("deltalog").mode("append").save(path)
    spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id % 5 = 3").collect()
    frame = spark.readStream.option("maxFilesPerTrigger", 3).table(f"deltalog.`{path}`")
    writer = frame.writeStream.format("parquet").option("checkpointLocation", root + "/checkpoint")
    query = writer.trigger(availableNow=True).start(root + "/copy")
    query.awaitTermination()
    print(len([each for each in query.recentProgress if each["numInputRows"] > 0]))
    print(sorted(row.id for row in spark.read.parquet(root + "/copy").collect()))
"""


@pytest.mark.newest
@pytest.mark.thorough
def test_executors_read_the_rows_of_a_stream(tmp_path: Path) -> None:
    done = run_python(SCRIPT, ROOT=str(tmp_path), PYSPARK_PYTHON=sys.executable)
    rows = [number for number in range(20) if number % 5 != 3]
    assert done.stdout.splitlines()[-2:] == ["2", str(rows)], done.stdout + done.stderr
