"""The output of Spark's job: exactly the rows of the attempts that Spark accepted are committed."""

import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from deltalog import DeltaError, MissingFileError, UnsupportedFeatureError
from deltalog.spark.write import job


def rows(path: str) -> list[tuple[Any, ...]]:
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def files(path: str) -> list[Path]:
    """Returns all files except the log."""
    found = sorted(Path(path).rglob("*"))
    return [file for file in found if file.is_file() and "_delta_log" not in file.parts]


def then(data: DataFrame, path: str, sabotage: Callable[[Path], None]) -> DataFrame:
    """Returns the rows of `data` in the first of two tasks.

    The second task waits until the first one has committed its output, and then calls `sabotage` on its directory.
    """
    collected = [row.asDict() for row in data.collect()]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            yield pa.RecordBatch.from_pylist(collected, schema)
            return
        committed: list[Path] = []
        for _ in range(600):
            committed = list(Path(path).glob("*/_temporary/0/task_*"))
            if committed:
                break
            time.sleep(0.1)
        sabotage(committed[0])

    schema = pa.schema([("a", pa.int32()), ("p", pa.string())])
    two_tasks = data.sparkSession.range(0, 2, numPartitions=2)
    return two_tasks.mapInArrow(work, data.schema)


def test_a_failed_job_is_reported_even_if_its_files_cannot_be_deleted(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pending:
        def __init__(self, pending: Any) -> None:
            self._pending = pending

        def __getattr__(self, name: str) -> Any:
            return getattr(self._pending, name)

        def abort(self) -> None:
            raise DeltaError("the store went away")

    begin = job.begin
    monkeypatch.setattr(job, "begin", lambda *arguments: Pending(begin(*arguments)))
    with pytest.raises(PySparkException, match="boom"):
        spark.sql("SELECT CAST(raise_error('boom') AS INT) AS a").write.format("deltalog").save(path)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_jobs_whose_output_is_lost_are_not_committed(spark: SparkSession, path: str, mode: str) -> None:
    """The job succeeds but its files are gone, as if the executors and the driver had different file systems."""

    def lose(directory: Path) -> None:
        shutil.rmtree(directory)

    data = spark.createDataFrame([(1, "x"), (2, "y")], "a int, p string")
    data.write.format("deltalog").save(path)
    before = files(path)
    with pytest.raises(MissingFileError, match=r"wrote 2 rows.* hold 0"):
        then(data, path, lose).write.format("deltalog").mode(mode).save(path)
    assert deltalake.DeltaTable(path).version() == 0
    assert rows(path) == [(1, "x"), (2, "y")]
    assert files(path) == before


@pytest.mark.parametrize("same_names", [True, False])
def test_partitions_that_share_a_directory_are_refused(
    spark: SparkSession, path: str, same_names: bool
) -> None:
    """This happens on file systems that ignore case.

    Spark gives the files of a task's partitions the same name, so one replaces the other. With different names,
    only the partition values would be wrong.
    """

    def fold(directory: Path) -> None:
        for file in list(directory.joinpath("p=a").glob("part-*.parquet")):
            file.rename(directory / "p=A" / (file.name if same_names else f"other-{file.name}"))
        shutil.rmtree(directory / "p=a")
        for checksum in directory.joinpath("p=A").glob(".*"):
            checksum.unlink()

    data = spark.createDataFrame([(1, "A"), (2, "a")], "a int, p string")
    data.write.format("deltalog").partitionBy("p").save(path)
    assert rows(path) == [(1, "A"), (2, "a")]
    before = files(path)
    reason = "wrote 2 rows.* hold 1" if same_names else "2 partitions to 1 directories"
    with pytest.raises((MissingFileError, UnsupportedFeatureError), match=reason):
        then(data, path, fold).write.format("deltalog").mode("overwrite").save(path)
    assert rows(path) == [(1, "A"), (2, "a")]
    assert files(path) == before


def test_the_name_of_the_null_partition_is_refused_as_a_value(spark: SparkSession, path: str) -> None:
    """An empty string is null (PROTOCOL.md, "Partition Value Serialization"), but Hive's directory name for null is
    an ordinary value.
    """
    null = spark.createDataFrame([(1, None), (2, ""), (3, " ")], "a int, p string")
    null.write.format("deltalog").partitionBy("p").save(path)
    assert rows(path) == [(1, None), (2, None), (3, " ")]
    both = spark.createDataFrame([(1, None), (2, "__HIVE_DEFAULT_PARTITION__")], "a int, p string")
    with pytest.raises(UnsupportedFeatureError, match="__HIVE_DEFAULT_PARTITION__"):
        both.write.format("deltalog").mode("append").save(path)
    assert deltalake.DeltaTable(path).version() == 0


RETRIES = """
    import glob, os, sys, time
    from pathlib import Path
    import deltalake
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    import deltalog.spark
    from deltalog import DeltaTable, Field, Identity, Schema

    root = sys.argv[1]
    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    spark = deltalog.spark.enable(builder.config("spark.sql.shuffle.partitions", "1").getOrCreate())
    spark.sparkContext.setLogLevel("OFF")

    def fails_first(batches):
        # All rows are returned before the failure, so files of the failed attempts exist.
        yield from batches
        if TaskContext.get().attemptNumber() < 1:
            raise ValueError("this attempt fails")

    def last_task_fails(pattern):
        known = set(glob.glob(pattern))

        def work(batches):
            if TaskContext.get().partitionId() == 0:
                yield from batches
                return
            for _ in range(600):
                if set(glob.glob(pattern)) - known:
                    raise ValueError("the last attempt fails")
                time.sleep(0.1)
            raise ValueError("the other task has not committed")

        return work

    def files(path):
        return sorted(str(file.relative_to(path)) for file in Path(path).rglob("*.parquet"))

    # The location of a task's output after the task is committed and before the job is.
    committed = {"1": "*/_temporary/0/task_*/*.parquet", "2": "*/part-*.parquet"}
    for version, pattern in committed.items():
        spark.conf.set("mapreduce.fileoutputcommitter.algorithm.version", version)
        path = f"{root}/v{version}"
        data = spark.range(0, 40, numPartitions=2).mapInArrow(fails_first, "id long")
        data.selectExpr("id", "id % 3 AS p").write.format("deltalog").partitionBy("p").save(path)
        data.selectExpr("id + 100 AS id", "id % 3 AS p").write.format("deltalog").mode("append").save(path)
        table = deltalake.DeltaTable(path)
        assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [*range(40), *range(100, 140)], version
        assert sorted(table.to_pyarrow_dataset().files) == files(path), version

        # No two rows have the same number, whichever attempts of the tasks are committed.
        counted = f"{root}/counted {version}"
        columns = [Field("n", "long"), Field("number", "long", identity=Identity())]
        DeltaTable.create(counted, Schema(columns))
        data.selectExpr("id AS n").write.format("deltalog").mode("append").save(counted)
        table = DeltaTable(counted).to_pyarrow_table()
        assert sorted(table["n"].to_pylist()) == [*range(40)], version
        assert len(set(table["number"].to_pylist())) == 40, version
        assert sorted(deltalake.DeltaTable(counted).to_pyarrow_dataset().files) == files(counted), version

        plain = f"{root}/plain {version}"
        spark.range(3).write.format("deltalog").save(plain)
        before = files(plain)
        in_job = last_task_fails(f"{plain}/{pattern}")
        try:
            spark.range(0, 2, numPartitions=2).mapInArrow(in_job, "id long").write.format("deltalog").mode(
                "overwrite"
            ).save(plain)
        except Exception as error:
            assert "the last attempt fails" in str(error), error
        else:
            raise AssertionError("the job must fail")
        assert files(plain) == before, version
        assert sorted(deltalake.DeltaTable(plain).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2], version
    print("done")
"""


@pytest.mark.slow
def test_failed_attempts_are_not_committed_with_any_commit_algorithm(tmp_path: Path) -> None:
    """With the second algorithm, a task's files are at their final location before the job is committed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RETRIES), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    assert done.stdout.endswith("done\n"), done.stderr
