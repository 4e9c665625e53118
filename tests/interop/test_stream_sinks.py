"""Streams write into a table with deltalog and with the JVM connector. Each can continue from a checkpoint of the
other.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from tests.interop.conftest import Jvm
from tests.interop.jvm_peer import stream_of_files
from tests.spark.streams.batches import Batches, ended, repeat_batch, write, written

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def add(batches: Batches, number: int) -> None:
    ids = list(range(10 * number, 10 * number + 10))
    batches.add(id=ids, time=[START + datetime.timedelta(seconds=5 * id_) for id_ in ids])


class Stream:
    """A stream that deltalog or the JVM connector can run."""

    def __init__(self, jvm: Jvm, spark: SparkSession, directory: Path, *, by_window: bool) -> None:
        self.batches = Batches(directory / "batches")
        self._jvm, self._spark, self._by_window = jvm, spark, by_window

    def ours(self, table: Path, checkpoint: Path) -> None:
        frame = stream_of_files(self._spark, str(self.batches.directory), by_window=self._by_window)
        ended(write(frame, checkpoint).start(str(table)))

    def theirs(self, table: Path, checkpoint: Path) -> None:
        self._jvm.write_stream(self.batches.directory, table, checkpoint, by_window=self._by_window)


def commits(table: Path) -> list[dict[str, Any]]:
    """Returns the `commitInfo` of each commit, without the fields that always differ."""
    found = []
    for log in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        [info] = [action["commitInfo"] for action in actions if "commitInfo" in action]
        [txn] = [action["txn"] for action in actions if "txn" in action]
        parameters = info["operationParameters"]
        assert parameters.pop("queryId") == txn["appId"]
        names = ("operation", "operationParameters", "isBlindAppend")
        metrics = {name: int(info["operationMetrics"][name]) for name in ("numOutputRows",)}
        found.append({**{name: info.get(name) for name in names}, "txn": txn["version"], "metrics": metrics})
    return found


@pytest.mark.parametrize("begins", ["ours", "theirs"])
def test_a_stream_continues_with_the_other_connector(
    jvm: Jvm, spark: SparkSession, tmp_path: Path, begins: str
) -> None:
    """The other engine has written a batch, but Spark has not recorded that the batch is finished."""
    stream = Stream(jvm, spark, tmp_path, by_window=False)
    runs = [stream.ours, stream.theirs] if begins == "ours" else [stream.theirs, stream.ours]
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    add(stream.batches, 0)
    for number in range(1, 4):
        add(stream.batches, number)
        runs[(number - 1) % 2](table, checkpoint)
        repeat_batch(checkpoint, number)
    runs[1](table, checkpoint)
    assert [row[0] for row in sorted(written(table))] == list(range(40))
    assert DeltaTable(table).version() == 3
    assert [commit["txn"] for commit in commits(table)] == [0, 1, 2, 3]


@pytest.mark.parametrize("by_window", [False, True])
def test_both_connectors_record_the_same_commits(
    jvm: Jvm, spark: SparkSession, tmp_path: Path, by_window: bool
) -> None:
    """The stream also has batches without rows, which a watermark causes."""
    stream = Stream(jvm, spark, tmp_path, by_window=by_window)
    for number in range(3):
        add(stream.batches, number)
    stream.ours(tmp_path / "ours", tmp_path / "our checkpoint")
    stream.theirs(tmp_path / "theirs", tmp_path / "their checkpoint")
    assert commits(tmp_path / "ours") == commits(tmp_path / "theirs")
    assert written(tmp_path / "ours") == written(tmp_path / "theirs")
