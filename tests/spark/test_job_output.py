"""A commit contains exactly the rows of the task attempts that Spark has accepted."""

import logging
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltalog import DeltaError, DeltaTable, MissingFileError
from deltalog.spark.write import job


def rows(path: str) -> list[tuple[Any, ...]]:
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def files(path: str) -> list[Path]:
    """Returns all files of the table except its log."""
    found = sorted(Path(path).rglob("*"))
    return [file for file in found if file.is_file() and "_delta_log" not in file.parts]


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


def test_a_failed_job_is_reported_even_if_its_reports_are_lost(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lose(_: Any) -> bytes:
        raise OSError("no space left")

    monkeypatch.setattr(job, "_received", lose)
    with pytest.raises(PySparkException, match="boom"):
        spark.sql("SELECT CAST(raise_error('boom') AS INT) AS a").write.format("deltalog").save(path)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 1
    assert "a%20table" in told[0]
    assert "until VACUUM" in told[0]
    assert "no space left" in told[0]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_jobs_whose_output_is_lost_are_not_committed(
    spark: SparkSession, path: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job succeeds, but one of its files does not exist on the driver, as if executors had a different file system.
    It is not committed.
    """
    data = spark.createDataFrame([(1, "x"), (2, "y")], "a int, p string")
    data.write.format("deltalog").save(path)
    before = files(path)
    received = job._received

    def lose(reports: Any) -> bytes:
        new = [file for file in files(path) if file not in before and file.suffix == ".parquet"]
        new[0].unlink()
        return received(reports)

    monkeypatch.setattr(job, "_received", lose)
    with pytest.raises(
        MissingFileError, match=r"does not exist.*same place for the driver and all executors"
    ):
        data.repartition(2).write.format("deltalog").mode(mode).save(path)
    assert deltalake.DeltaTable(path).version() == 0
    assert rows(path) == [(1, "x"), (2, "y")]
    assert files(path) == before


def test_files_that_belong_to_no_task_are_ignored(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit contains only the files that the job's tasks report, even if there are other files in the directory."""
    received = job._received

    def leave(reports: Any) -> bytes:
        for file in files(path):
            shutil.copy(file, file.with_name(f"part-99999-{file.name}"))
        return received(reports)

    monkeypatch.setattr(job, "_received", leave)
    spark.createDataFrame([(1, "x")], "a int, p string").write.format("deltalog").partitionBy("p").save(path)
    assert rows(path) == [(1, "x")]


def test_partition_values_do_not_depend_on_names_of_directories(spark: SparkSession, path: str) -> None:
    """NULL and the string `__HIVE_DEFAULT_PARTITION__`, which Hive uses for NULL in directory names, are different
    values. Strings that differ only in case are different values, too.

    An empty string is NULL. (PROTOCOL.md, "Partition Value Serialization".)
    """
    given = [(1, None), (2, ""), (3, " "), (4, "__HIVE_DEFAULT_PARTITION__"), (5, "a"), (6, "A"), (7, "a/=%")]
    data = spark.createDataFrame(given, "a int, p string").repartition(1)
    expected = sorted(((a, p or None) for a, p in given), key=str)
    data.write.format("deltalog").partitionBy("p").save(path)
    assert rows(path) == expected
    table = DeltaTable(path)
    assert sorted(table.to_pyarrow_table().to_pydict()["a"]) == [1, 2, 3, 4, 5, 6, 7]
    partitions = [partition["p"] for partition in table.partitions()]
    assert sorted(partitions, key=str) == sorted({p for _, p in expected}, key=str)
    assert [
        row.a
        for row in spark.read.format("deltalog")
        .load(path)
        .where("p = '__HIVE_DEFAULT_PARTITION__'")
        .collect()
    ] == [4]
    # One task writes several files for each partition.
    data.union(data).repartition(1).write.format("deltalog").option("maxRecordsPerFile", 1).mode(
        "overwrite"
    ).save(path)
    assert rows(path) == sorted([*expected, *expected], key=str)


def test_several_open_files_keep_their_partition_values(spark: SparkSession, path: str) -> None:
    """With Spark's setting for concurrent writers, a task has several files open, switches between partitions, and
    begins additional files.
    """
    spark.conf.set("spark.sql.maxConcurrentOutputFileWriters", "3")
    try:
        data = spark.range(0, 60, numPartitions=1).selectExpr("id", "CAST(id % 3 AS STRING) AS p")
        data.write.format("deltalog").partitionBy("p").option("maxRecordsPerFile", 7).save(path)
        assert rows(path) == sorted(((n, str(n % 3)) for n in range(60)), key=str)
        more = spark.range(0, 60, numPartitions=1).selectExpr("id", "CAST(id % 11 AS STRING) AS p")
        more.write.format("deltalog").mode("overwrite").save(path)
        assert rows(path) == sorted(((n, str(n % 11)) for n in range(60)), key=str)

        same_name = spark.range(0, 60, numPartitions=1).selectExpr(
            "id", "IF(id % 2 = 0, NULL, '__HIVE_DEFAULT_PARTITION__') AS p"
        )
        before = files(path)
        with pytest.raises(Exception, match="maxConcurrentOutputFileWriters to 0"):
            same_name.write.format("deltalog").mode("append").option("maxRecordsPerFile", 7).save(path)
        assert deltalake.DeltaTable(path).version() == 1
        assert files(path) == before
    finally:
        spark.conf.unset("spark.sql.maxConcurrentOutputFileWriters")


def test_a_file_is_cut_by_the_number_of_rows(spark: SparkSession, path: str) -> None:
    spark.range(0, 100, numPartitions=1).write.format("deltalog").option("maxRecordsPerFile", 30).save(path)
    counts = pa.table(DeltaTable(path).files(columns=["num_records"]))["num_records"].to_pylist()
    assert sorted(counts) == [10, 30, 30, 30]


def test_many_reports_reach_the_commit(spark: SparkSession, path: str) -> None:
    """The tasks' reports are too long to be passed to Python as text, so they are passed in a file."""
    columns = [f"id + {index} AS a_column_with_a_long_name_{index}" for index in range(200)]
    data = spark.range(0, 40, numPartitions=4).selectExpr(*columns)
    data.write.format("deltalog").option("maxRecordsPerFile", 1).save(path)
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    assert sorted(table["a_column_with_a_long_name_7"].to_pylist()) == list(range(7, 47))


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
        # All rows are returned before the failure, so failed attempts have written files.
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
                    # The driver must know that the other task has started.
                    time.sleep(3)
                    raise ValueError("the last attempt fails")
                time.sleep(0.1)
            raise ValueError("the other task has not committed")

        return work

    def files(path):
        return sorted(str(file.relative_to(path)) for file in Path(path).rglob("*.parquet"))

    def settled(path, expected):
        # A task that is cancelled deletes its files some time after its job has failed.
        for _ in range(300):
            if files(path) == expected:
                return
            time.sleep(0.1)
        raise AssertionError(f"{files(path)} are not {expected}")

    path = f"{root}/table"
    data = spark.range(0, 40, numPartitions=2).mapInArrow(fails_first, "id long")
    data.selectExpr("id", "id % 3 AS p").write.format("deltalog").partitionBy("p").save(path)
    data.selectExpr("id + 100 AS id", "id % 3 AS p").write.format("deltalog").mode("append").save(path)
    table = deltalake.DeltaTable(path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [*range(40), *range(100, 140)]
    assert sorted(table.to_pyarrow_dataset().files) == files(path)

    # No two rows have the same number, no matter which attempts of the tasks are committed.
    counted = f"{root}/counted"
    columns = [Field("n", "long"), Field("number", "long", identity=Identity())]
    DeltaTable.create(counted, Schema(columns))
    data.selectExpr("id AS n").write.format("deltalog").mode("append").save(counted)
    table = DeltaTable(counted).to_pyarrow_table()
    assert sorted(table["n"].to_pylist()) == [*range(40)]
    assert len(set(table["number"].to_pylist())) == 40
    assert sorted(deltalake.DeltaTable(counted).to_pyarrow_dataset().files) == files(counted)

    plain = f"{root}/plain"
    spark.range(3).write.format("deltalog").save(plain)
    before = files(plain)
    in_job = last_task_fails(f"{plain}/part-*.parquet")
    try:
        spark.range(0, 2, numPartitions=2).mapInArrow(in_job, "id long").write.format("deltalog").mode(
            "overwrite"
        ).save(plain)
    except Exception as error:
        assert "the last attempt fails" in str(error), error
    else:
        raise AssertionError("the job must fail")
    settled(plain, before)
    assert sorted(deltalake.DeltaTable(plain).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    print("done")
"""


@pytest.mark.slow
def test_failed_attempts_are_not_committed(tmp_path: Path) -> None:
    run(RETRIES, tmp_path)


KILLED = """
    import os, signal, sys, time
    from pathlib import Path
    import deltalake
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    import deltalog.spark

    root = sys.argv[1]
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
    spark = deltalog.spark.enable(builder.config("spark.executor.memory", "1g").getOrCreate())
    spark.sparkContext.setLogLevel("OFF")

    def parent(process):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

    def dies_first(batches):
        yield from batches
        context = TaskContext.get()
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            # The parent of this process is the worker daemon, whose parent is the executor.
            os.kill(parent(os.getppid()), signal.SIGKILL)
            time.sleep(60)

    path = f"{root}/a table"
    data = spark.range(0, 4000, numPartitions=4).mapInArrow(dies_first, "id long")
    data.selectExpr("id", "id % 3 AS p").write.format("deltalog").partitionBy("p").save(path)
    table = deltalake.DeltaTable(path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [*range(4000)]
    assert table.version() == 0
    found = {str(file.relative_to(path)) for file in Path(path).rglob("*.parquet")}
    named = set(table.to_pyarrow_dataset().files)
    print("orphans:", len(found - named))
    assert named <= found and len(found - named) <= 3, found - named
    assert spark.read.format("deltalog").load(path).where("p = 1").count() == 1333
    print("done")
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_an_executor_that_dies_leaves_no_row(tmp_path: Path) -> None:
    """An executor that dies leaves no rows in the table. It may leave files that belong to no version."""
    run(KILLED, tmp_path)


def run(script: str, root: Path) -> None:
    """Runs a script in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(root)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    assert done.stdout.endswith("done\n"), done.stderr
