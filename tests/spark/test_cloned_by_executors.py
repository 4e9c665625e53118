"""Spark's tasks copy the files of deep clones, each file once and with the same bytes. Failed clones leave no files
behind.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import (
    CorruptDataError,
    DeltaTable,
    MissingFileError,
    TableAlreadyExistsError,
    UnavailableError,
    write_deltalake,
)
from deltalog._internal import SparkClone
from deltalog.clone import CloneArguments
from deltalog.commit import commit_arguments
from deltalog.spark.read import planner
from deltalog.spark.sql import division
from deltalog.spark.tables import DeltaTable as SparkTable
from deltalog.spark.write.interrupts import RunningWrite
from tests.spark.test_executors import TRACKING, VECTORS, create, files


@pytest.fixture(autouse=True)
def by_executors(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(division.MIN_SIZE, "0")
    yield
    spark.conf.unset(division.MIN_SIZE)


@pytest.fixture
def at(tmp_path: Path) -> str:
    """Returns a location for the clone."""
    return str(tmp_path / "a clone %")


def copy(spark: SparkSession, path: str, at: str, mode: str = "CREATE") -> Any:
    [done] = spark.sql(f"{mode} TABLE deltalog.`{at}` DEEP CLONE deltalog.`{path}`").collect()
    return done


def stored(at: str) -> set[str]:
    """Returns the names of all files outside of the log."""
    found = (file for file in Path(at).rglob("*") if file.is_file())
    return {str(file.relative_to(at)) for file in found if "_delta_log" not in str(file)}


def copied_by_tasks(at: str) -> list[str]:
    """Returns the data files that Spark's tasks have copied. They are recognized by the checksum files that Hadoop
    writes beside them.
    """
    return [file for file in files(at) if Path(file).with_name(f".{Path(file).name}.crc").exists()]


def contents(path: str) -> list[bytes]:
    return sorted(Path(file).read_bytes() for file in files(path))


def rows(path: str) -> list[Any]:
    return sorted(map(str, DeltaTable(path).to_pyarrow_table().to_pylist()))


@pytest.mark.parametrize(
    "properties",
    [
        "",
        f"{VECTORS}, {TRACKING}",
        f"{VECTORS}, 'delta.columnMapping.mode' = 'name'",
    ],
)
@pytest.mark.newest
def test_the_clone_has_the_same_bytes(spark: SparkSession, path: str, at: str, properties: str) -> None:
    """The clone has the same bytes as the source. Partition directories have escaped names, and the driver copies the
    files of deletion vectors.
    """
    table = create(spark, path, properties)
    spark.sql(f"DELETE FROM {table} WHERE a % 7 = 3")
    done = copy(spark, path, at)
    count = len(files(path))
    assert (done.num_copied_files, done.source_num_of_files, done.num_removed_files) == (count, count, 0)
    assert contents(at) == contents(path)
    assert sorted(copied_by_tasks(at)) == sorted(files(at))
    assert (rows(at), DeltaTable(at).verify().ok) == (rows(path), True)
    assert pa.table(DeltaTable(at).check("rows")).num_rows == 0
    assert len(spark.read.format("deltalog").load(at).collect()) == len(rows(path))
    # There are no files that do not belong to the table.
    vectors = {name for name in stored(at) if name.endswith(".bin")}
    names = {str(Path(file).relative_to(at)) for file in files(at)}
    assert {name for name in stored(at) if not name.endswith(".crc")} == names | vectors
    assert bool(vectors) == (VECTORS in properties)
    # Cloning again only copies new files.
    spark.sql(f"DELETE FROM {table} WHERE a = 1")
    spark.sql(f"INSERT INTO {table} SELECT 1000, p, q, c, s FROM {table} WHERE a = 2")
    before = set(files(at))
    done = copy(spark, path, at, "CREATE OR REPLACE")
    assert done.num_copied_files == len(set(files(at)) - before) == (1 if VECTORS in properties else 2)
    assert rows(at) == rows(path)
    assert copy(spark, path, at, "CREATE OR REPLACE").num_copied_files == 0


def test_a_copy_of_a_shallow_clone_has_its_files(spark: SparkSession, path: str, at: str) -> None:
    """A deep clone of a shallow clone copies files from where they are. The long list of files is passed to the JVM in
    a file. (This test runs with every Spark release.)
    """
    write_deltalake(path, pa.table({"id": [1, 2, 3], "p": ["a b", "é", None]}), partition_by=["p"])
    spark.sql(f"CREATE TABLE deltalog.`{path} low` SHALLOW CLONE deltalog.`{path}`")
    write_deltalake(f"{path} low", pa.table({"id": [4], "p": ["z"]}), mode="append")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "_INLINE", 0)
        SparkTable.forPath(spark, f"{path} low", {"allowedRoots": path}).clone(at, isShallow=False)
    assert sorted(copied_by_tasks(at)) == sorted(files(at))
    assert [row["id"] for row in sorted(DeltaTable(at).to_pyarrow_table().to_pylist(), key=str)] == [
        1,
        2,
        3,
        4,
    ]
    assert DeltaTable(at).verify().ok


@pytest.mark.newest
def test_missing_files_and_files_of_another_size_are_named(spark: SparkSession, path: str, at: str) -> None:
    """If files of the source are missing or have a different size, the error names them, and the clone leaves no files
    behind.
    """
    for number in range(4):
        write_deltalake(path, pa.table({"id": [number]}), mode="append")
    victim = Path(files(path)[2])
    content = victim.read_bytes()
    victim.write_bytes(content[1:])
    with pytest.raises(CorruptDataError, match="and the log says") as wrong:
        copy(spark, path, at)
    victim.unlink()
    with pytest.raises(MissingFileError, match="the file is not there") as gone:
        copy(spark, path, at)
    for error in (wrong, gone):
        assert victim.name in str(error.value)
        assert f"table {DeltaTable(path).table_uri}, version 3" in str(error.value)
    assert stored(at) == set()
    assert not Path(at, "_delta_log").exists()
    victim.write_bytes(content)
    copy(spark, path, at)
    assert rows(at) == rows(path)


@pytest.mark.newest
def test_tasks_that_still_run_when_the_job_has_failed_leave_nothing(
    spark: SparkSession, path: str, at: str
) -> None:
    """When a job fails, Spark does not wait for its other tasks. Here, one task has begun to copy a large file when
    another task finds that a smaller file has a different size than in the log.
    """
    for number in range(2):
        write_deltalake(path, pa.table({"id": [number]}), mode="append")
    for file, size in zip(files(path), (1 << 28, 1 << 33), strict=True):
        os.truncate(file, size)
    with pytest.raises(CorruptDataError, match="the file has 268435456 bytes, and the log says"):
        copy(spark, path, at)
    assert stored(at) == set()


@pytest.mark.newest
def test_copies_without_a_commit_are_deleted(
    spark: SparkSession, path: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies that are not committed are deleted. Here, another writer creates a table at the same location while files
    are copied.
    """
    write_deltalake(path, pa.table({"id": [1, 2, 3]}))
    ended: list[bool] = []
    begin = RunningWrite.begin_commit

    def ending(running: RunningWrite) -> None:
        # At this point, the tasks have copied the files.
        ended.append(len(stored(at)) == 2)
        write_deltalake(at, pa.table({"other": ["x"]}))
        begin(running)

    monkeypatch.setattr(RunningWrite, "begin_commit", ending)
    with pytest.raises(TableAlreadyExistsError):
        copy(spark, path, at)
    assert ended == [True]
    assert rows(at) == ["{'other': 'x'}"]
    assert len(stored(at)) == 1


@pytest.mark.newest
def test_copies_that_the_driver_does_not_see_are_not_committed(
    spark: SparkSession, path: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path may be a different directory on each machine, so copies that the driver cannot see are not committed."""
    write_deltalake(path, pa.table({"id": [1, 2, 3]}))
    begin = RunningWrite.begin_commit

    def ending(running: RunningWrite) -> None:
        for name in stored(at):
            Path(at, name).unlink()
        begin(running)

    monkeypatch.setattr(RunningWrite, "begin_commit", ending)
    with pytest.raises(MissingFileError, match="the same place for the driver and all executors"):
        copy(spark, path, at)
    assert not Path(at, "_delta_log").exists()


@pytest.mark.newest
def test_where_a_task_cannot_write(spark: SparkSession, path: str) -> None:
    write_deltalake(path, pa.table({"id": [1, 2, 3]}))
    Path(f"{path} file").write_text("no directory")
    with pytest.raises(UnavailableError, match="could not be copied to") as failed:
        copy(spark, path, f"{path} file/clone")
    assert "minSizeForExecutors" in str(failed.value)


@pytest.mark.newest
def test_an_interrupt_ends_the_copies(
    spark: SparkSession, path: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(path, pa.table({"id": [1, 2, 3]}))
    begin = RunningWrite.begin_commit

    def ending(running: RunningWrite) -> None:
        running.interrupt()
        begin(running)

    monkeypatch.setattr(RunningWrite, "begin_commit", ending)
    with pytest.raises(KeyboardInterrupt):
        copy(spark, path, at)
    assert stored(at) == set()
    assert not Path(at, "_delta_log").exists()


@pytest.mark.newest
def test_what_the_driver_copies(
    spark: SparkSession, path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_deltalake(path, pa.table({"id": [1, 2, 3]}))
    caplog.set_level(logging.INFO, "deltalog.spark")

    def reason(name: str) -> str:
        caplog.clear()
        copy(spark, path, str(tmp_path / name))
        found = [
            record.getMessage() for record in caplog.records if "the driver copies" in record.getMessage()
        ]
        assert bool(copied_by_tasks(str(tmp_path / name))) != bool(found)
        return found[0].rpartition(": ")[2] if found else "executors"

    assert reason("a") == "executors"
    spark.conf.set(division.MIN_SIZE, "1m")
    size = Path(files(path)[0]).stat().st_size
    assert reason("b") == f"the files have {size} bytes, and less than {1 << 20}"
    spark.conf.unset(division.MIN_SIZE)
    assert reason("c") == "the tasks of a local session run in the driver"


def test_files_are_shared_out_by_their_sizes(path: str, at: str) -> None:
    """Files are distributed to tasks as in a scan of Spark: up to 128 MiB for each task, where each file counts as 4
    MiB more than its size.
    """
    write_deltalake(path, pa.table({"id": [1]}))
    mib = 1 << 20

    def tasks(sizes: list[int], parallelism: int = 1) -> list[list[int]]:
        log = Path(path, f"_delta_log/{DeltaTable(path).version() + 1:020}.json")

        def add(number: int, size: int) -> dict[str, Any]:
            facts = {"partitionValues": {}, "modificationTime": 0, "dataChange": True}
            return {"path": f"{number}.parquet", "size": size, **facts}

        removes = [
            {"path": Path(file).name, "dataChange": True, "deletionTimestamp": 0} for file in files(path)
        ]
        lines = [{"remove": remove} for remove in removes]
        lines += [{"add": add(number, size)} for number, size in enumerate(sizes)]
        log.write_text("\n".join(map(json.dumps, lines)))
        plan = SparkClone.begin(
            DeltaTable(path)._snapshot, at, CloneArguments(False, "error", {}), commit_arguments(None, None)
        )
        assert (plan.files, plan.bytes) == (len(sizes), sum(sizes))
        packed = plan.tasks(parallelism).to_bytes()
        position = 4 + int.from_bytes(packed[:4], "big")
        count, position = int.from_bytes(packed[position : position + 4], "big"), position + 4
        found = []
        for _ in range(count):
            end = position + 4 + int.from_bytes(packed[position : position + 4], "big")
            position, shared = position + 4, []
            while position < end:
                shared.append(int.from_bytes(packed[position + 4 : position + 12], "big") // mib)
                position += 13
                for _ in range(3):
                    position += 4 + int.from_bytes(packed[position : position + 4], "big")
            found.append(shared)
        assert position == len(packed)
        return found

    assert tasks([60 * mib, 500 * mib, 60 * mib, mib]) == [[500], [60, 60], [1]]
    assert tasks([mib] * 50) == [[1] * 25, [1] * 25]
    assert tasks([124 * mib, 124 * mib]) == [[124], [124]]
    # If there are enough files, all cores have work.
    assert tasks([20 * mib, 20 * mib, 4 * mib], 3) == [[20], [20], [4]]
    assert tasks([mib] * 4, 100) == [[1]] * 4
    assert tasks([], 4) == []
