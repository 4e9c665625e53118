"""If the processes of a stream are killed at any step, every row is still written once, and no batch is committed
twice.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from tests.conftest import ROOT
from tests.spark.processes import run_python
from tests.spark.streams.batches import ended, written
from tests.spark.streams.kills import STEPS, stream

BATCHES = 14
ROWS = 5
# The number of processes that are killed at random moments.
KILLS = int(os.environ.get("DELTALOG_KILLS", "10"))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Creates a directory with the table that the stream reads. Each version of the table becomes a batch."""
    for number in range(BATCHES):
        rows = pa.table({"id": pa.array(range(number * ROWS, number * ROWS + ROWS), pa.int64())})
        write_deltalake(tmp_path / "source", rows, mode="append")
    return tmp_path


def kill(directory: Path, step: str, victim: str = "both") -> bool:
    """Runs the stream until it is killed or ends. Returns whether it was killed."""
    command = [sys.executable, "-m", "tests.spark.streams.kills", str(directory), step, victim]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    is_dead = "dead" in done.stdout
    assert is_dead or done.returncode == 0, done.stderr[-4000:]
    return is_dead


def check(directory: Path, batches: int = BATCHES) -> None:
    """Checks that each row was written once, and that each batch is one version."""
    assert written(directory / "target") == sorted(((id_,) for id_ in range(batches * ROWS)), key=str)
    table = DeltaTable(directory / "target")
    assert table.verify().ok
    logs = sorted((directory / "target" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    recorded = [action["txn"]["version"] for action in actions if "txn" in action]
    assert recorded == list(range(batches))
    assert table.version() == batches - 1


@pytest.mark.oldest
def test_a_batch_is_written_once_whenever_the_processes_die(spark: SparkSession, directory: Path) -> None:
    """The processes are killed at the two most dangerous steps: when files are written but not committed, and when the
    commit is made but Spark has not recorded it.
    """
    for step, victim in (("tasks write", "both"), ("the batch is committed", "jvm")):
        assert kill(directory, step, victim)
    ended(stream(spark, directory))
    check(directory)


@pytest.mark.thorough
@pytest.mark.oldest
@pytest.mark.timeout(900)
def test_the_processes_die_at_each_step(spark: SparkSession, directory: Path) -> None:
    """The same query is killed at the first step, restarted, killed at the second step, and so on."""
    for step in STEPS:
        assert kill(directory, step), step
    ended(stream(spark, directory))
    check(directory)


@pytest.mark.thorough
@pytest.mark.oldest
@pytest.mark.timeout(900 + 30 * KILLS)
def test_one_or_both_processes_die_at_any_moment(spark: SparkSession, directory: Path) -> None:
    draw = random.Random(os.environ.get("DELTALOG_SEED"))  # noqa: S311 (no secret)
    batches = BATCHES
    for _ in range(KILLS):
        if not kill(directory, str(draw.uniform(0, 4)), draw.choice(["both", "both", "jvm", "python"])):
            for _ in range(BATCHES):
                rows = pa.table({"id": pa.array(range(batches * ROWS, batches * ROWS + ROWS), pa.int64())})
                write_deltalake(directory / "source", rows, mode="append")
                batches += 1
    ended(stream(spark, directory))
    check(directory, batches)


CLUSTER = """
    import os, signal, sys, time
    from pathlib import Path
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sf
    import deltalog.spark
    from tests.spark.streams.batches import Batches, ended, write

    root = Path(os.environ["ROOT"])
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executor.memory", "1g")
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
    spark = deltalog.spark.enable(builder.getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    marker = str(root / "marker")

    def parent(process):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

    @sf.udf("bigint")
    def deadly(value):
        # Kills its executor once. The parent of a Python worker is the worker daemon, and its parent is the executor.
        if value == 13:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return value
            os.kill(parent(os.getppid()), signal.SIGKILL)
            time.sleep(60)
        return value

    batches = Batches(root / "batches")
    for first in (0, 10, 20):
        batches.add(id=list(range(first, first + 10)))
    rows = batches.read(spark).repartition(2).select(deadly("id").alias("id"))
    ended(write(rows, root / "checkpoint").start(str(root / "target")))
    print("ended")
    spark.stop()
"""


@pytest.mark.thorough
@pytest.mark.oldest
def test_an_executor_dies(tmp_path: Path) -> None:
    done = run_python(CLUSTER, ROOT=str(tmp_path), PYTHONPATH=os.pathsep.join([str(ROOT), *sys.path]))
    assert "ended" in done.stdout, done.stderr[-4000:]
    assert (tmp_path / "marker").exists()
    assert written(tmp_path / "target") == sorted(((id_,) for id_ in range(30)), key=str)
    assert DeltaTable(tmp_path / "target").version() == 2
