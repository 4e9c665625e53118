"""Tests the functions of the Spark layer that only the benchmarks use."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog
from benches.contenders import spark_ours


def test_after_forget_the_next_plan_is_a_first_one(spark: SparkSession, path: str) -> None:
    spark.range(3).write.format("deltalog").save(path)
    read = spark.read.format("deltalog")
    assert read.load(path).count() == 3
    # The commit keeps its size and its time, so only a plan that reads the commit notices the damage.
    commit = Path(path, "_delta_log", f"{0:020}.json")
    times = commit.stat()
    commit.write_bytes(b"x" * times.st_size)
    os.utime(commit, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read.load(path).count() == 3
    spark_ours.forget()
    with pytest.raises(deltalog.CorruptLogError, match=commit.name):
        read.load(path)
