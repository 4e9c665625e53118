"""The objects that plan the files of a batch. Another process can make an equal planner from its key."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog._internal import Snapshot, SparkBatch, TableStream
from deltalog.spark.read import open_streams
from deltalog.spark.read.planner import Batch, batch_key, forget, key_of, planner_of
from deltalog.spark.read.table_version import TableVersion
from deltalog.table.stream import StreamArguments, StreamLimits


@pytest.fixture
def snapshot(tmp_path: Path) -> Iterator[Snapshot]:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    yield Snapshot.open(str(tmp_path))
    forget()


def end_of(stream: TableStream, limits: StreamLimits, start: str | None = None) -> str:
    found = stream.latest(start, limits)
    assert found is not None
    return found


@pytest.mark.newest
def test_a_planner_lists_the_same_files_without_its_stream(snapshot: Snapshot) -> None:
    content = StreamArguments(start_version=1, exclude="[.]json$")
    stream = TableStream(snapshot, content)
    end = end_of(stream, StreamLimits())
    key = batch_key(TableVersion.of(snapshot), Batch("gone", content, None, end))
    found = planner_of(key)
    assert found.key == key
    batch = SparkBatch(stream, None, end)
    assert found.size() == batch.size_in_bytes() > 0
    assert bytes(found.plan("", "UTC")) == batch.plan_spark("", "UTC").to_bytes()
    assert not key_of(key).is_version


@pytest.mark.newest
def test_a_planner_holds_no_reference_to_an_open_stream(snapshot: Snapshot) -> None:
    stream = TableStream(snapshot, StreamArguments())
    end = end_of(stream, StreamLimits())
    key = batch_key(TableVersion.of(snapshot), Batch("open", StreamArguments(), None, end))
    open_streams.keep("open", stream)
    try:
        assert planner_of(key) is not planner_of(key)
    finally:
        open_streams.drop("open")
    assert planner_of(key) is planner_of(key)


@pytest.mark.newest
def test_the_end_of_a_stream_is_set_only_once(snapshot: Snapshot, tmp_path: Path) -> None:
    opened = open_streams.OpenStream(TableStream(snapshot, StreamArguments()))
    opened.end_at_newest()
    first = end_of(opened.stream, StreamLimits(files=1))
    write_deltalake(tmp_path, pa.table({"id": [9]}), mode="append")
    opened.end_at_newest()
    last = end_of(opened.stream, StreamLimits(), first)
    assert end_of(opened.stream, StreamLimits(), last) == last
