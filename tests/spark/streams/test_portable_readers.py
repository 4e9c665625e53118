"""Uses the stream readers and writers of the Python data source without a session, as Spark's Python processes do."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltalog.spark.connect import stream_writer, task_files
from deltalog.spark.connect.stream_reader import HAS_LIMITS, Offset, StreamReader
from deltalog.spark.connect.stream_writer import StreamWriter
from deltalog.spark.portable import DeltalogDataSource

Rows = list[dict[str, Any]]
FEED = {"delta.enableChangeDataFeed": "true"}


def open_reader(path: Path, **options: str) -> StreamReader:
    """Returns a stream reader that is created in the same way as by Spark: the source first returns its columns and is
    pickled, and its copy creates the reader.
    """
    source = DeltalogDataSource({"path": str(path), "numPartitions": "3", **options})
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source)).streamReader(schema)  # noqa: S301
    assert isinstance(reader, StreamReader)
    return reader


def latest(reader: StreamReader, start: Offset, *, is_limited: bool = False) -> Offset:
    """Asks the reader for the end of the next batch, in the way of the installed Spark release."""
    if not HAS_LIMITS:
        reader.partitions(
            start, start
        )  # Older releases make this call first, to tell the reader where the query continues.
        return reader.latestOffset()
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    limit = reader.getDefaultReadLimit() if is_limited else ReadAllAvailable()
    found: Offset = reader.latestOffset(start, limit)  # type: ignore[call-arg]
    return found


def rows(reader: StreamReader, start: Offset, end: Offset) -> Rows:
    """Returns the rows of a batch. Each partition is read with a pickled copy of the reader, as in Spark's workers."""
    found = []
    for partition in reader.partitions(start, end):
        copy = pickle.loads(pickle.dumps((reader.read, partition)))  # noqa: S301
        found += [row for batch in copy[0](copy[1]) for row in batch.to_pylist()]
    return sorted(found, key=str)


def add(path: Path, *ids: int, **options: Any) -> None:
    write_deltalake(path, pa.table({"id": pa.array(ids, pa.int64())}), mode="append", **options)


def test_rows_of_snapshot_and_commits(tmp_path: Path) -> None:
    """The table has deletion vectors, column mapping and partitions."""
    table = pa.table({"id": [1, 2, 3, 4], "p q": ["x", "x", "y", "y"]})
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path, table, partition_by=["p q"], configuration=properties)
    DeltaTable(tmp_path).delete("id = 2")
    reader = open_reader(tmp_path)
    begin = reader.initialOffset()
    end = latest(reader, begin)
    first = rows(reader, begin, end)
    assert first == [{"id": 1, "p q": "x"}, {"id": 3, "p q": "y"}, {"id": 4, "p q": "y"}]
    assert latest(reader, end) == end
    assert reader.partitions(end, end) == []
    reader.commit(end)
    write_deltalake(tmp_path, table.slice(0, 1), mode="append")
    next_end = latest(reader, end)
    assert rows(reader, end, next_end) == [{"id": 1, "p q": "x"}]
    reader.stop()

    again = open_reader(tmp_path)  # Another process repeats the first batch after further commits.
    assert rows(again, begin, end) == first
    assert latest(again, end) == next_end


@pytest.mark.skipif(not HAS_LIMITS, reason="older releases ask for all")
def test_limits(tmp_path: Path) -> None:
    for id_ in range(3):
        add(tmp_path, id_)
    reader = open_reader(tmp_path, maxFilesPerTrigger="2")
    first = latest(reader, {}, is_limited=True)
    assert (first["reservoirVersion"], first["index"], first["isStartingVersion"]) == (2, 1, True)
    assert rows(reader, {}, first) == [{"id": 0}, {"id": 1}]
    assert latest(reader, first) == {**first, "reservoirVersion": 3, "index": -1, "isStartingVersion": False}
    reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    end = latest(reader, first, is_limited=True)
    add(tmp_path, 3)
    assert latest(reader, end, is_limited=True) == end
    by_size = open_reader(tmp_path, maxBytesPerTrigger="1")
    assert rows(by_size, {}, latest(by_size, {}, is_limited=True)) == [{"id": 0}]
    assert str(by_size.getDefaultReadLimit()) == "ReadMaxBytes(max_bytes=1)"


def test_change_feeds_are_divided_between_workers(tmp_path: Path) -> None:
    add(tmp_path, 0, 1, configuration=FEED)
    reader = open_reader(tmp_path, readChangeFeed="true")
    first = latest(reader, {})
    assert [(row["id"], row["_change_type"]) for row in rows(reader, {}, first)] == [
        (0, "insert"),
        (1, "insert"),
    ]
    for id_ in range(2, 8):
        add(tmp_path, id_)
    DeltaTable(tmp_path).update({"id": "70"}, predicate="id = 7")
    end = latest(reader, first)
    assert len(reader.partitions(first, end)) == 3
    found = rows(reader, first, end)
    feed = pa.table(DeltaTable(tmp_path).load_cdf(1, 7)).to_pylist()
    assert found == sorted(feed, key=str)
    assert {row["_change_type"] for row in found} == {"insert", "update_preimage", "update_postimage"}
    late = open_reader(tmp_path, readChangeFeed="true", startingVersion="3")
    assert len(rows(late, {}, latest(late, {}))) == 4 + 2
    # Only the first batch needs the starting version, so a stream that continues does not need it to exist.
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(7):
        (tmp_path / f"_delta_log/{version:020}.json").unlink()
    assert latest(open_reader(tmp_path, readChangeFeed="true", startingVersion="3"), end) == end
    late = open_reader(tmp_path, readChangeFeed="true", startingVersion="3")
    with pytest.raises(VersionNotFoundError):
        latest(late, {})


def test_a_stream_that_starts_with_the_next_commit(tmp_path: Path) -> None:
    """The offset of an empty batch records which commit comes next, so a restarted stream begins with the same
    commit.
    """
    add(tmp_path, 1)
    reader = open_reader(tmp_path, startingVersion="latest")
    first = latest(reader, {})
    assert (first["reservoirVersion"], first["index"], rows(reader, {}, first)) == (1, -1, [])
    add(tmp_path, 2)
    again = open_reader(tmp_path, startingVersion="latest")
    assert rows(again, first, latest(again, first)) == [{"id": 2}]


def test_schema_changes(tmp_path: Path) -> None:
    """Each of two consecutive schema changes ends the query once, and the next run of the query continues."""
    add(tmp_path, 1)
    reader = open_reader(tmp_path)
    end = latest(reader, {})
    expected: dict[str, Any] = {"id": 2}
    for name in ("a", "b"):
        wider = pa.table({"id": pa.array([2], pa.int64()), name: ["x"]})
        write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")
        with pytest.raises(SchemaMismatchError):
            latest(reader, end)
        reader = open_reader(tmp_path)
        assert latest(reader, end) != end
        start, end = end, latest(reader, end)
        expected = dict.fromkeys(expected, None) | {"id": 2, name: "x"}
        assert rows(reader, start, end) == [expected]


REFUSED = {
    "schemaTrackingLocation": ("/x", UnsupportedFeatureError, "a Python data source does not know where"),
    "allowSourceColumnDrop": ("always", UnsupportedFeatureError, "a Python data source does not know where"),
    "ignoreMissingFiles": ("true", UnsupportedFeatureError, "not read by Spark's Parquet reader"),
    "versionAsOf": ("0", InvalidArgumentError, "startingVersion"),
    "maxFilesTrigger": ("5", InvalidArgumentError, "did you mean maxFilesPerTrigger"),
    "startingTimestamp": ("2024-01-01 00:00:00", InvalidArgumentError, "has no time zone"),
    **({} if HAS_LIMITS else {"maxFilesPerTrigger": ("1", UnsupportedFeatureError, "Spark 4.2 or newer")}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_options(tmp_path: Path, name: str) -> None:
    add(tmp_path, 1)
    value, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        open_reader(tmp_path, **{name: value})


def test_batch_reads_refuse_options_of_streams(tmp_path: Path) -> None:
    add(tmp_path, 1)
    source = DeltalogDataSource({"path": str(tmp_path), "startingVersion": "0"})
    with pytest.raises(InvalidArgumentError, match="needs readChangeFeed"):
        source.reader(source.schema())


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Makes this process look like a Spark task of the batch with this number."""

    def begin(batch: int | None) -> None:
        known = (
            {} if batch is None else {"sql.streaming.queryId": "a query", "streaming.sql.batchId": str(batch)}
        )
        context = SimpleNamespace(getLocalProperty=known.get, partitionId=lambda: 0)
        for module in (stream_writer, task_files):
            monkeypatch.setattr(module, "TaskContext", SimpleNamespace(get=lambda: context))

    return begin


def write(path: Path, batch: int, *parts: list[int], **options: str) -> None:
    """Writes a batch as Spark's processes do. Each part contains the data of one task."""
    schema = open_schema()
    writer = DeltalogDataSource({"path": str(path), **options}).streamWriter(schema, False)
    started = pickle.dumps(writer)
    messages = []
    for part in parts:
        copy: StreamWriter = pickle.loads(started)  # noqa: S301
        batches = pa.table({"id": pa.array(part, pa.int64())}).to_batches()
        messages.append(pickle.loads(pickle.dumps(copy.write(iter(batches)))))  # noqa: S301
    other = DeltalogDataSource({"path": str(path), **options}).streamWriter(schema, False)
    other.commit(messages, batch)


def open_schema() -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(
        {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    )


def test_a_batch_is_written_only_once(tmp_path: Path, task: Callable[[int | None], None]) -> None:
    task(0)
    write(tmp_path, 0, [1, 2], [3])
    count = len(list(tmp_path.glob("**/*.parquet")))
    write(tmp_path, 0, [1, 2], [3])
    assert (DeltaTable(tmp_path).version(), len(list(tmp_path.glob("**/*.parquet")))) == (0, count)
    task(1)
    write(tmp_path, 1, [], [])
    assert DeltaTable(tmp_path).version() == 1
    assert DeltaTable(tmp_path).transaction_versions() == {"a query": 1}
    assert sorted(pa.table(DeltaTable(tmp_path).to_arrow())["id"].to_pylist()) == [1, 2, 3]


def test_a_batch_that_another_process_has_written_at_the_same_time(
    tmp_path: Path, task: Callable[[int | None], None]
) -> None:
    """Two processes run the same query. The tasks of both write files, because the batch is not recorded yet. The
    second commit finds that the batch is recorded by now, and deletes the files of its tasks.
    """
    task(0)
    schema = open_schema()
    writers = [DeltalogDataSource({"path": str(tmp_path)}).streamWriter(schema, False) for _ in range(2)]
    copies = [pickle.loads(pickle.dumps(writer)) for writer in writers]  # noqa: S301
    data = pa.table({"id": pa.array([1], pa.int64())})
    messages = [copy.write(iter(data.to_batches())) for copy in copies]
    for writer, message in zip(writers, messages, strict=True):
        writer.commit([message], 0)
    assert DeltaTable(tmp_path).version() == 0
    assert len(list(tmp_path.glob("**/*.parquet"))) == 1
    assert pa.table(DeltaTable(tmp_path).to_arrow()).num_rows == 1


def test_writes_without_a_query_and_wrong_options_are_refused(
    tmp_path: Path, task: Callable[[int | None], None]
) -> None:
    task(None)
    with pytest.raises(InvalidArgumentError, match="a streaming query of Spark, which has an id"):
        write(tmp_path, 0, [1])
    for name, value in (("txnAppId", "me"), ("replaceWhere", "id = 1"), ("overwriteSchema", "true")):
        with pytest.raises(InvalidArgumentError, match=name):
            write(tmp_path, 0, [1], **{name: value})
    assert not (tmp_path / "_delta_log").exists()


def test_secrets_are_refused_before_anything_is_pickled(tmp_path: Path) -> None:
    add(tmp_path, 1)
    with pytest.raises(UnsupportedFeatureError, match="aws_secret_access_key"):
        DeltalogDataSource({"path": str(tmp_path), "aws_secret_access_key": "canary"})


def test_a_commit_without_the_message_of_a_task_is_refused(
    tmp_path: Path, task: Callable[[int | None], None]
) -> None:
    task(0)
    writer = DeltalogDataSource({"path": str(tmp_path)}).streamWriter(open_schema(), False)
    copy = pickle.loads(pickle.dumps(writer))  # noqa: S301
    message = copy.write(iter(pa.table({"id": pa.array([1], pa.int64())}).to_batches()))
    with pytest.raises(InvalidArgumentError, match="has not reported its files"):
        writer.commit([message, None], 0)
    writer.abort([message, None], 0)
    assert list(tmp_path.glob("**/*.parquet")) == []
