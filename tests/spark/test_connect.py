"""The same format under Spark Connect, in a process of its own: a process holds either kind of session."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

pytest.importorskip("grpc")
pytest.importorskip("pandas")


def test_read_and_write(tmp_path: Path) -> None:
    path = str(tmp_path / "a table")
    deltalake.write_deltalake(
        path, pa.table({"a": pa.array([1, 2], pa.int64()), "p": ["x", "y"]}), partition_by=["p"]
    )
    changed = f"{path} 6"
    for number in (1, 3, 4):
        deltalake.write_deltalake(
            changed,
            pa.table({"id": [number]}),
            mode="append",
            configuration={"delta.enableChangeDataFeed": "true"},
        )
    code = textwrap.dedent(
        f"""
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.remote("local[2]").getOrCreate()
        import deltalog.spark
        deltalog.spark.enable(spark)
        deltalog.spark.enable(spark)
        path = {path!r}
        read = lambda **options: sorted(map(tuple, spark.read.format("deltalog").options(**options).load(path).collect()))
        print("first", read())
        spark.createDataFrame([(3, "z")], "a long, p string").write.format("deltalog").mode("append").save(path)
        print("appended", read())
        print("old", read(versionAsOf="0"))
        table = deltalog.spark.DeltaTable.forPath(spark, path)
        print("versions", [row.version for row in table.history().collect()], table.toDF().where("a > 1").count())
        new = path + " 2"
        spark.range(5).write.format("deltalog").mode("append").save(new)
        print("new", spark.read.format("deltalog").load(new).count())
        spark.range(2).write.format("deltalog").mode("overwrite").save(new)
        print("over", spark.read.format("deltalog").load(new).count())
        times = spark.sql("select timestamp '2024-02-29 12:00:00+00:00' t, array(timestamp_ntz '2024-02-29 12:00:00') n")
        times.write.format("deltalog").mode("overwrite").save(path + " 4")
        read_times = spark.read.format("deltalog").load(path + " 4").selectExpr("unix_seconds(t)", "cast(n[0] as string)")
        print("times", *map(tuple, read_times.collect()))
        spark.range(0).write.format("deltalog").mode("append").save(path + " 5")
        print("empty", spark.read.format("deltalog").load(path + " 5").collect())
        feed = spark.read.format("deltalog").option("readChangeFeed", True).option("startingVersion", 1)
        changes = feed.load(path + " 6").where("_change_type = 'insert'").select("id", "_change_type", "_commit_version")
        print("changes", *map(tuple, changes.orderBy("id").collect()))
        try:
            spark.read.format("deltalog").load(path + " 3").collect()
        except Exception as error:
            print("missing", "a%20table%203" in str(error))
        spark.stop()
        """
    )
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=environment,
    )
    wanted = [
        "first [(1, 'x'), (2, 'y')]",
        "appended [(1, 'x'), (2, 'y'), (3, 'z')]",
        "old [(1, 'x'), (2, 'y')]",
        "versions [1, 0] 2",
        "new 5",
        "over 2",
        "times (1709208000, '2024-02-29 12:00:00')",
        "empty []",
        "changes (3, 'insert', 1) (4, 'insert', 2)",
        "missing True",
    ]
    assert done.stdout.splitlines() == wanted, done.stderr
