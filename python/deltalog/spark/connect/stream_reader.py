"""A table as the source of a stream, through Spark's Python data source API. A Python process on the driver plans
batches, and workers read them.

    driver, one process for each query            workers
    latestOffset  →  TableStream.latest
    partitions    →  TableStream.partitions   →   read_fragment (Arrow)
    commit        →  TableStream.release

Offsets are the same strings as in classic sessions, so a query can continue in a classic session with the same
checkpoint. The first batch begins at the offset that `initialOffset` returns. Spark does not store that offset in the
checkpoint.

- From Spark 4.2 on, a source can limit its batches. Older releases ask `latestOffset` for the end of all new rows,
  and do not pass the start of the batch. `_reached` stores the end of the previous batch as the start of the next.
  After a restart, `_reached` is known as well, because Spark first asks for the partitions of the last batch in the
  checkpoint, or of an empty batch at its end.
- For a change feed, each worker gets two offsets, and finds the files between them itself.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from deltalog._internal import Snapshot, TableStream, read_fragment
from deltalog.spark.connect.bounds import version_or_time
from deltalog.spark.connect.place import Place, place_of
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.options import Options
from deltalog.spark.schema import arrow_schema, feed_schema, field_names, of_query
from deltalog.spark.streams import source_options
from deltalog.table.stream import StreamArguments, StreamLimits

try:  # These classes exist in Spark 4.2 and newer.
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    HAS_LIMITS = True
except ImportError:
    HAS_LIMITS = False

PARTITIONS = "numpartitions"
_DEFAULT_PARTITIONS = "16"
_MOST_FILES = 1000
_RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
_CHECKPOINT = (
    "a Python data source does not know where the checkpoint is: use a classic session, or a Connect server with the "
    "jar of deltalog"
)
_PARQUET = "the files are not read by Spark's Parquet reader: leave it out"
_LIMIT = (
    f"Spark {spark_version} does not let Python data sources limit their batches: leave it out, or use Spark 4.2 or "
    "newer"
)
_REFUSED = {
    "schemaTrackingLocation": _CHECKPOINT,
    "schemaLocation": _CHECKPOINT,
    "streamingSourceTrackingId": _CHECKPOINT,
    "allowSourceColumnDrop": _CHECKPOINT,
    "allowSourceColumnRename": _CHECKPOINT,
    "allowSourceColumnTypeChange": _CHECKPOINT,
    "datetimeRebaseMode": _PARQUET,
    "int96RebaseMode": _PARQUET,
    "ignoreCorruptFiles": _PARQUET,
    "ignoreMissingFiles": _PARQUET,
    **({} if HAS_LIMITS else {"maxFilesPerTrigger": _LIMIT, "maxBytesPerTrigger": _LIMIT}),
}

Offset = dict[str, Any]
_BEGINNING: Offset = {}
"""The offset at the beginning of every stream."""


class _Files(InputPartition):
    """Some files of a batch, serialized by the core."""

    def __init__(self, fragment: bytes) -> None:
        super().__init__(fragment)


class _Changes(InputPartition):
    """The changes between two offsets."""

    def __init__(self, start: str | None, end: str) -> None:
        super().__init__((start, end))


class StreamReader(DataSourceStreamReader):
    """Reads a table for a query.

    Spark pickles the reader for the workers. A worker that needs the stream opens it itself.
    """

    def __init__(
        self, options: Options, roots: Sequence[str], version: int | None, schema: StructType
    ) -> None:
        given = {name: value for name, value in options.values.items() if name != PARTITIONS}
        source_options.check(Options(given), _REFUSED)
        self._content: StreamArguments = content_of(options)
        self._limits: StreamLimits = source_options.limits_of(options)
        self._partitions = int(options.values.get(PARTITIONS, _DEFAULT_PARTITIONS))
        self._place: Place = place_of(options)
        self._roots = list(roots)
        self._version = version
        self._schema = schema
        self._opened: TableStream | None = None
        self._reached: str | None = None
        self._empty: str | None = None
        """The end of the first batch, if it has no rows."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def _stream(self) -> TableStream:
        if self._opened is None:
            snapshot = self._snapshot(self._version)
            columns = field_names(feed_schema(snapshot) if self._content.change_feed else of_query(snapshot))
            if self._schema.names != columns:
                raise InvalidArgumentError(
                    f"the Delta table {snapshot.uri} has the columns {', '.join(columns)}: omit the schema"
                )
            # Listing a local directory is cheap, so it is listed at each call.
            pause = timedelta(0) if snapshot.uri.startswith("file:") else None
            self._opened = TableStream(snapshot, self._content._replace(pause=pause))
            _write_offsets_without_spaces()
        return self._opened

    def _snapshot(self, version: int | None) -> Snapshot:
        uri, storage_options = self._place
        return Snapshot.open(uri, version=version, storage_options=storage_options, allowed_roots=self._roots)

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name, as those below)
        return _BEGINNING

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        """Returns the end of all new rows. Only releases before 4.2 call it without a limit."""
        return self._latest(self._reached, StreamLimits(is_unlimited=True))

    def _latest(self, start: str | None, limits: StreamLimits) -> Offset:
        stream = self._stream()
        end = stream.latest(start, limits)
        if end is None:
            # The stream begins with the next commit, which does not exist yet. The checkpoint records the end of an
            # empty batch, so that a restart begins with the same commit.
            end = self._empty = stream.newest()
        self._reached = end
        return _offset(end)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, last = _text(start), _text(end)
        self._reached = last
        if first == last or last is None or (first is None and last == self._empty):
            return []
        if self._content.change_feed:
            return [_Changes(*part) for part in _divided(start, end, self._partitions)]
        return [_Files(fragment) for fragment in self._stream().partitions(first, last, self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow

        if isinstance(partition, _Files):
            rows = read_fragment(partition.value, self._place.storage_options)
        elif isinstance(partition, _Changes):
            rows = self._changes(*partition.value)
        else:
            return
        # Spark refuses batches whose types or nullability differ from the schema.
        expected = arrow_schema(self._schema)
        for batch in pyarrow.RecordBatchReader.from_stream(rows):
            yield batch.cast(expected)

    def _changes(self, start: str | None, end: str) -> Any:
        """Reads changes in a worker, with the schema of the last version in the range."""
        last = json.loads(end)
        version = last["reservoirVersion"] - (1 if last["index"] < 0 else 0)
        stream = TableStream(self._snapshot(version), self._content)
        return stream.read(start, end, self._schema.names)

    def commit(self, end: Offset) -> None:
        done = _text(end)
        if self._opened is not None and done is not None:
            self._opened.release(done)

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()


if HAS_LIMITS:

    class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
        """The reader for releases that let sources limit their batches."""

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            # Spark passes this limit back, or asks for all rows. A `ReadLimit` cannot express both limits at once, so
            # `_latest` applies `self._limits`.
            files, size, _ = self._limits
            if files is None and size is not None:
                return ReadMaxBytes(size)
            return ReadMaxFiles(files or _MOST_FILES)

        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
            is_unlimited = isinstance(limit, ReadAllAvailable)
            return self._latest(_text(start), self._limits._replace(is_unlimited=is_unlimited))

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._stream().end_at_newest()

        def reportLatestOffset(self) -> Offset | None:  # noqa: N802
            return _offset(self._stream().newest())


def stream_reader(
    options: Options, roots: Sequence[str], version: int | None, schema: StructType
) -> StreamReader:
    """Returns the reader of a table for a stream.

    Args:
        version: the version whose schema the rows have; None for the newest.
    """
    reader = LimitedStreamReader if HAS_LIMITS else StreamReader
    return reader(options, roots, version, schema)


def content_of(options: Options) -> StreamArguments:
    """Returns where a stream starts and what it reads. Raises an error for options with invalid values."""
    bound = partial(version_or_time, version_name="startingVersion", timestamp_name="startingTimestamp")
    return source_options.content_of(options, bound)


def _text(offset: Mapping[str, Any]) -> str | None:
    """Returns the text of an offset, as the core writes it; None for the beginning of the stream."""
    return json.dumps(offset, separators=(",", ":")) if offset else None


def _offset(text: str) -> Offset:
    offset: Offset = json.loads(text)
    return offset


def _divided(start: Offset, end: Offset, parts: int) -> Iterator[tuple[str | None, str]]:
    """Divides a batch of changes into at most `parts` ranges, each of whole versions.

    A batch at the beginning of the stream has no start offset, and is not divided.
    """
    first, last = _text(start), _text(end)
    if first is None or last is None:
        yield first, str(last)
        return
    versions = range(start["reservoirVersion"] + 1, end["reservoirVersion"])
    for version in versions[:: max(-(-len(versions) // max(parts - 1, 1)), 1)]:
        border = str(_text({**end, "reservoirVersion": version, "index": -1, "isStartingVersion": False}))
        yield first, border
        first = border
    yield first, last


def _write_offsets_without_spaces() -> None:
    """Makes Spark's Python process on the driver write offsets without spaces, as the core does.

    Spark compares the texts of offsets and stores them in the checkpoint. The module that writes them may be loaded as
    `__main__` or by its own name.
    """
    for name in ("__main__", _RUNNER):
        runner = sys.modules.get(name)
        if runner is not None and hasattr(runner, "LATEST_OFFSET_FUNC_ID"):
            compact = SimpleNamespace(loads=json.loads, dumps=partial(json.dumps, separators=(",", ":")))
            vars(runner)["json"] = compact
