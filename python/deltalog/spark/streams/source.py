"""Tables as sources of streams: answers the calls of `StreamSource.java`.

The core decides what belongs to each batch, and Spark's checkpoint stores the progress. Java identifies a stream by a
JSON string (`SourceText`). It contains everything that is needed to open the stream again if a new Python process has
replaced the previous one.
"""

import json
import uuid
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from deltalog._internal import Snapshot, SparkBatch, TableStream
from deltalog.spark.errors import SchemaMismatchError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import location_of
from deltalog.spark.options import Options
from deltalog.spark.read import open_streams
from deltalog.spark.read.format import file_format
from deltalog.spark.read.open_streams import OpenStream
from deltalog.spark.read.planner import Batch, batch_key
from deltalog.spark.read.relation import bound_of, check_expected_columns, opened, partition_schema
from deltalog.spark.read.table_version import TableVersion
from deltalog.spark.schema import CHANGE_FIELDS, compared_columns, feed_schema, of_query, with_fields
from deltalog.spark.streams import kept_start, source_options
from deltalog.table.stream import StreamArguments, StreamLimits

_NO_PAUSE = timedelta(0)


class SourceText(NamedTuple):
    """The description that identifies a stream. It may contain secrets, and is never passed to Spark."""

    id: str
    table: TableVersion
    """The newest version at the time when the stream was opened."""
    content: StreamArguments
    """What the stream reads. `pause` and `tracking` are not set."""
    limits: StreamLimits
    options: dict[str, str]
    """The options of the query, including storage options."""
    place: str
    """The path that Spark gives to the source within the query's checkpoint."""

    def to_json(self) -> str:
        parts = {part: getattr(self, part)._asdict() for part in ("table", "content", "limits")}
        return json.dumps({**self._asdict(), **parts})

    @classmethod
    def of(cls, text: str) -> "SourceText":
        parts = json.loads(text)
        table = parts["table"]
        return cls(
            parts["id"],
            TableVersion(**{**table, "allowed_roots": tuple(table["allowed_roots"])}),
            StreamArguments(**parts["content"]),
            StreamLimits(**parts["limits"]),
            parts["options"],
            parts["place"],
        )

    @property
    def is_tracked(self) -> bool:
        """Whether the stream has a log of the schemas with which it reads (`schemaTrackingLocation`)."""
        return source_options.is_tracked(Options(self.options))


def columns(jvm: Jvm, session: Any, options: Options, expected: str | None) -> str:
    """Returns the columns of a stream that would be opened now, as JSON. Raises an error if `expected` differs."""
    source_options.check(options)
    snapshot = newest = _newest(jvm, session, options)
    tracking = source_options.tracking_of(jvm, session, options, None)
    if tracking is not None:
        snapshot = TableStream(snapshot, StreamArguments(tracking=tracking)).snapshot
    is_feed = options.wants_changes
    if expected is not None and not is_feed:
        # For a table in a catalog, Spark expects the newest columns, although a tracked stream may still have older
        # ones.
        check_expected_columns(newest, expected)
    return _columns(snapshot, is_feed)


def _columns(snapshot: Snapshot, is_feed: bool) -> str:
    return feed_schema(snapshot) if is_feed else of_query(snapshot)


def open_stream(jvm: Jvm, session: Any, options: Options, columns: str, place: str) -> str:
    """Opens a stream for a query, and returns its description. Raises an error if its columns are no longer `columns`.

    Args:
        place: the path that Spark gives to the source within the query's checkpoint.
    """
    source_options.check(options)
    bound = partial(bound_of, jvm, session, end="starting")
    content, limits = source_options.arguments_of(options, bound)
    snapshot = _newest(jvm, session, options)
    text = SourceText(str(uuid.uuid4()), TableVersion.of(snapshot), content, limits, options.values, place)
    made = _opened(jvm, session, text, snapshot)
    _check_columns(made.snapshot, columns, content.change_feed)
    open_streams.keep(text.id, made)
    return text.to_json()


def _opened(jvm: Jvm, session: Any, text: SourceText, snapshot: Snapshot) -> TableStream:
    tracking = source_options.tracking_of(jvm, session, Options(text.options), text.place)
    # Listing a local directory is cheap, so it is listed at each call. New commits are then seen immediately.
    pause = _NO_PAUSE if snapshot.uri.startswith("file:") else None
    return TableStream(snapshot, text.content._replace(pause=pause, tracking=tracking))


def _newest(jvm: Jvm, session: Any, options: Options) -> Snapshot:
    location = location_of(jvm, session, options)
    location.ensure_in_reach()
    return opened(jvm, session, options, location)


def _check_columns(snapshot: Snapshot, columns: str, is_feed: bool) -> None:
    """Raises an error if the stream no longer has the `columns` of the query. Spark does not check this."""
    if compared_columns(columns) != compared_columns(_columns(snapshot, is_feed)):
        raise SchemaMismatchError(
            "the columns of the table have changed since the stream was defined: load it again with readStream, and "
            f"start the new query (table {snapshot.uri}, version {snapshot.version})"
        )


def _stream(jvm: Jvm, session: Any, text: SourceText) -> OpenStream:
    """Returns the stream with this description. Opens it again if it was opened in an earlier Python process."""
    found = open_streams.find(text.id)
    if found is None:
        location = location_of(jvm, session, Options(text.options))
        table = text.table._replace(location=location.number)
        found = open_streams.keep(text.id, _opened(jvm, session, text, table.open()))
    return found


def begin(jvm: Jvm, session: Any, text: str, kept: str | None) -> str:
    """Determines the first version of a stream. Returns, as JSON, its new description, and the start to save, if any.

    Args:
        kept: the start that was saved in the checkpoint, as JSON, or None.
    """
    source = SourceText.of(text)
    if not kept_start.asks_to_find(source.content):
        return json.dumps({"stream": text, "start": None})
    found = kept_start.KeptStart.found(_stream(jvm, session, source).stream, Options(source.options), kept)
    if found is None:
        return json.dumps({"stream": text, "start": None})
    # The next call opens the stream again, with the fixed start.
    open_streams.drop(source.id)
    begun = source._replace(content=kept_start.pinned(source.content, found.version))
    return json.dumps({"stream": begun.to_json(), "start": found.to_json()})


def latest(
    jvm: Jvm, session: Any, text: str, start: str | None, *, is_unlimited: bool, ends_at_newest: bool
) -> str:
    """Returns the end of the batch that begins at `start`, and the end of the newest version, as JSON."""
    source = SourceText.of(text)
    found = _stream(jvm, session, source)
    if ends_at_newest:
        found.end_at_newest()
    end = found.stream.latest(start, source.limits._replace(is_unlimited=is_unlimited))
    return json.dumps({"offset": end, "newest": found.stream.newest()})


def batch(jvm: Jvm, session: Any, text: str, start: str | None, end: str) -> str:
    """Describes a relation of the rows between two offsets (`RelationDescription.java`)."""
    source = SourceText.of(text)
    stream = _stream(jvm, session, source).stream
    snapshot = stream.snapshot
    SparkBatch(stream, start, end)  # Raises an error for offsets of another table or another kind of source.
    key = batch_key(source.table, Batch(source.id, source.content, start, end, source.is_tracked))
    is_feed = source.content.change_feed
    partitions = partition_schema(snapshot)
    return json.dumps(
        {
            "uri": snapshot.uri,
            "isInReach": True,
            "label": ("changes in the " if is_feed else "") + _label(start, end),
            "identity": key,
            "planner": key,
            "schema": _columns(snapshot, is_feed),
            "partitionSchema": with_fields(partitions, CHANGE_FIELDS[1:]) if is_feed else partitions,
            "format": file_format(session, snapshot, is_change_feed=is_feed, is_stream=True),
        }
    )


def _label(start: str | None, end: str) -> str:
    """Returns the range of versions, and of files within versions, that plans show for a batch."""
    return f"stream {'' if start is None else f'from {_place(start)} '}to {_place(end)}"


def _place(offset: str) -> str:
    parts = json.loads(offset)
    snapshot = " of the snapshot" if parts["isStartingVersion"] else ""
    position = f":{parts['index']}" if parts["index"] >= 0 else ""
    return f"v{parts['reservoirVersion']}{position}{snapshot}"


def outstanding(jvm: Jvm, session: Any, text: str, start: str | None) -> str:
    """Returns the metrics of a query that has read up to `start`, as JSON."""
    if start is None:
        return "{}"
    versions, files, size = _stream(jvm, session, SourceText.of(text)).stream.backlog(start)
    return json.dumps(
        {"numVersionsOutstanding": versions, "numFilesOutstanding": files, "numBytesOutstanding": size}
    )


def release(jvm: Jvm, session: Any, text: str, end: str) -> None:
    """Frees memory that the stream only needs for batches up to an offset.

    Raises `SchemaMismatchError` if the schema changes at this offset, and the new schema was added to the schema log.
    """
    source = SourceText.of(text)
    if source.is_tracked or open_streams.find(source.id) is not None:
        _stream(jvm, session, source).stream.release(end)


def stop(text: str) -> None:
    """Ends a stream."""
    open_streams.drop(SourceText.of(text).id)
