"""The planners of batches, which are made again from their keys in another process."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog._internal import Snapshot, VersionNotFoundError
from deltalog.arguments import StreamContent
from deltalog.spark.read import open_streams
from deltalog.spark.read.planner import Batch, batch_key, forget, key_of, planner_of
from deltalog.spark.read.table_version import TableVersion


@pytest.fixture
def snapshot(tmp_path: Path) -> Iterator[Snapshot]:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    yield Snapshot.open(str(tmp_path))
    forget()


@pytest.mark.newest
def test_a_planner_without_its_stream_lists_the_same_files(snapshot: Snapshot) -> None:
    content = StreamContent(start_version=1, excluded="[.]json$")
    stream = snapshot.spark_stream(content)
    end = stream.latest(None, is_unlimited=True)
    assert end is not None
    key = batch_key(TableVersion.of(snapshot), Batch("gone", content, None, end))
    found = planner_of(key)
    assert found.key == key
    assert found.size() == stream.size_in_bytes(None, end) > 0
    assert found.plan("id > 5", "UTC") != found.plan("", "UTC")
    assert bytes(found.plan("", "UTC")) == stream.plan_spark(None, end, "", "UTC").to_bytes()
    assert not key_of(key).is_version


@pytest.mark.newest
def test_a_planner_keeps_nothing_of_an_open_stream(snapshot: Snapshot) -> None:
    stream = snapshot.spark_stream(StreamContent())
    end = stream.latest(None)
    assert end is not None
    key = batch_key(TableVersion.of(snapshot), Batch("open", StreamContent(), None, end))
    open_streams.keep("open", stream)
    try:
        assert planner_of(key) is not planner_of(key)
    finally:
        open_streams.drop("open")
    assert planner_of(key) is planner_of(key)


@pytest.mark.newest
def test_a_stream_ends_where_it_is_told_to_once(snapshot: Snapshot, tmp_path: Path) -> None:
    stream = snapshot.spark_stream(StreamContent())
    stream.end_at_newest()
    first = stream.latest(None, 1)
    write_deltalake(tmp_path, pa.table({"id": [9]}), mode="append")
    stream.end_at_newest()
    last = stream.latest(first)
    assert stream.latest(last) == last
    assert stream.outstanding(last) == (0, 0, 0)
    with pytest.raises(VersionNotFoundError):
        snapshot.spark_stream(StreamContent(start_version=9)).latest(None)
