"""Streams of the Python data source and of classic sessions can use the same tables and checkpoints."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from deltalog import DeltaTable, write_deltalake
from deltalog.spark.connect.stream_reader import HAS_LIMITS
from deltalog.spark.portable import DeltalogDataSource
from tests.spark.processes import run_python
from tests.spark.streams.batches import Rows, ended, files, history, repeat_batch, written
from tests.spark.streams.queries import offsets, running

ONE_FILE = {"maxFilesPerTrigger": "1"} if HAS_LIMITS else {}


@pytest.fixture(scope="module")
def portable(spark: SparkSession) -> str:
    """Returns the format name of the Python data source, because `deltalog` is the classic source in this session."""

    class Portable(
        DeltalogDataSource
    ):  # A local class is pickled by value, so workers need no module for it.
        @classmethod
        def name(cls) -> str:
            return "portable"

    spark.dataSource.register(Portable)
    return Portable.name()


def add(path: Path, *ids: int) -> None:
    write_deltalake(path, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def rows(*ids: int) -> Rows:
    return sorted(((id_,) for id_ in ids), key=str)


def started(
    frame: DataFrame, form: str, checkpoint: Path, target: Path, mode: str = "append"
) -> StreamingQuery:
    writer = frame.writeStream.format(form).outputMode(mode).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(checkpoint)).start(str(target))


def run(spark: SparkSession, form: str, directory: Path, **options: str) -> StreamingQuery:
    """Runs a stream up to the newest version, with one of the two formats as source and sink."""
    frame = spark.readStream.format(form).options(**options).load(str(directory / "source"))
    return ended(started(frame, form, directory / "checkpoint", directory / "target"))


def test_a_checkpoint_can_be_used_by_the_other_source(
    spark: SparkSession, portable: str, tmp_path: Path
) -> None:
    """The stream switches between the two sources. If the Spark release lets sources limit their batches, one switch
    is in the middle of the snapshot.
    """
    source, target = tmp_path / "source", tmp_path / "target"
    add(source, 1, 2)
    add(source, 3)
    run(spark, portable, tmp_path, **ONE_FILE)
    add(source, 4)
    add(source, 5)
    run(spark, "deltalog", tmp_path, maxFilesPerTrigger="1")
    add(source, 6)
    DeltaTable(source).optimize.compact()
    run(spark, portable, tmp_path, **ONE_FILE)
    run(spark, "deltalog", tmp_path)  # This run finds no new rows.
    found = files(target)
    repeat_batch(tmp_path / "checkpoint", len(offsets(tmp_path / "checkpoint")) - 1)
    run(spark, portable, tmp_path)  # Spark repeats a batch that the table has recorded.
    assert written(target) == rows(1, 2, 3, 4, 5, 6)
    assert files(target) == found

    table = DeltaTable(source).metadata().id
    places = [(1, 0, "true"), (2, -1, "false")] if HAS_LIMITS else [(2, -1, "false")]
    places += [(3, -1, "false"), (4, -1, "false"), (6, -1, "false")]
    assert offsets(tmp_path / "checkpoint") == [
        f'{{"sourceVersion":1,"reservoirId":"{table}","reservoirVersion":{version},"index":{index},'
        f'"isStartingVersion":{is_initial}}}'
        for version, index, is_initial in places
    ]
    commits = DeltaTable(target).history()
    assert history(target) == ["STREAMING UPDATE"] * len(places)
    parameters = [commit["operationParameters"] for commit in reversed(commits)]
    assert [each["epochId"] for each in parameters] == [str(number) for number in range(len(places))]
    assert len({each["queryId"] for each in parameters}) == 1
    assert {each["outputMode"] for each in parameters} == {"Append"}


def test_two_streams_write_one_table(spark: SparkSession, portable: str, tmp_path: Path) -> None:
    """Two streams start at the same time. Both try to create the table, and then wait for more rows."""
    add(tmp_path / "source", 1, 2)
    frame = spark.readStream.format(portable).load(str(tmp_path / "source"))
    writers = [
        frame.writeStream.format(portable).option("checkpointLocation", str(tmp_path / name))
        for name in ("one", "two")
    ]
    with ExitStack() as stack:
        queries = [stack.enter_context(running(writer.start(str(tmp_path / "target")))) for writer in writers]
        for query in queries:
            query.processAllAvailable()
        assert written(tmp_path / "target") == rows(1, 1, 2, 2)
        add(tmp_path / "source", 3)
        for query in queries:
            query.processAllAvailable()
    assert written(tmp_path / "target") == rows(1, 1, 2, 2, 3, 3)
    assert DeltaTable(tmp_path / "target").transaction_versions() == {query.id: 1 for query in queries}


@pytest.mark.thorough
def test_output_modes(spark: SparkSession, portable: str, tmp_path: Path) -> None:
    add(tmp_path / "source", 1, 2)
    frame = spark.readStream.format(portable).load(str(tmp_path / "source")).groupBy().count()
    for count, more in ((2, (3,)), (3, ())):
        ended(started(frame, portable, tmp_path / "checkpoint", tmp_path / "target", "complete"))
        assert written(tmp_path / "target") == [(count,)]
        add(tmp_path / "source", *more)
    assert DeltaTable(tmp_path / "target").history()[0]["operationParameters"]["outputMode"] == "Complete"
    with pytest.raises(StreamingQueryException, match="does not support Update mode"):
        ended(started(frame, portable, tmp_path / "another", tmp_path / "no target", "update"))
    assert not (tmp_path / "no target").exists()


@pytest.mark.thorough
def test_a_failed_task_fails_the_batch(spark: SparkSession, portable: str, tmp_path: Path) -> None:
    add(tmp_path / "source", *range(10))
    frame = spark.readStream.format(portable).load(str(tmp_path / "source"))
    broken = frame.repartition(2).selectExpr("IF(id = 9, raise_error('no 9'), id) AS id")
    with pytest.raises(StreamingQueryException, match="no 9"):
        ended(started(broken, portable, tmp_path / "checkpoint", tmp_path / "target"))
    assert not (tmp_path / "target/_delta_log").exists()
    ended(started(frame, portable, tmp_path / "checkpoint", tmp_path / "target"))
    assert written(tmp_path / "target") == rows(*range(10))


KILLED = """
    import os, signal, threading, time
    from pathlib import Path
    from pyspark.sql import SparkSession
    from deltalog.spark import portable

    root = Path(os.environ["ROOT"])
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    portable.enable(spark)
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())

    def watch():
        while not (root / "target/_delta_log/00000000000000000000.json").exists():
            time.sleep(0.0005)
        os.write(1, b"dead" if not (root / "checkpoint/commits/0").exists() else b"late")
        os.kill(jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    rows = spark.readStream.format("deltalog").load(str(root / "source"))
    writer = rows.writeStream.format("deltalog").option("checkpointLocation", str(root / "checkpoint"))
    writer.start(str(root / "target")).awaitTermination()
"""


@pytest.mark.thorough
def test_the_processes_die_between_the_two_commits_of_a_batch(
    spark: SparkSession, portable: str, tmp_path: Path
) -> None:
    """The batch was committed to the table, but Spark has not recorded that it is finished."""
    add(tmp_path / "source", 1, 2)
    done = run_python(KILLED, ROOT=str(tmp_path))
    assert done.stdout.endswith("dead"), done.stderr[-4000:]
    assert DeltaTable(tmp_path / "target").version() == 0
    add(tmp_path / "source", 3)
    run(spark, portable, tmp_path)
    if not HAS_LIMITS:
        run(spark, portable, tmp_path)  # Older releases end after the repeated batch.
    assert written(tmp_path / "target") == rows(1, 2, 3)
    table = DeltaTable(tmp_path / "target")
    assert (table.version(), list(table.transaction_versions().values())) == (1, [1])
