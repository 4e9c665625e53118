"""`DeltaTable.stream`: the rows of a table as a sequence of batches, in which each row occurs once."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, NamedTuple

from deltalog import _internal
from deltalog.arguments import (
    Names,
    StoreOptions,
    columns_argument,
    location_argument,
    size_argument,
    span_argument,
    timestamp_argument,
    whole_argument,
)
from deltalog.checked import checks_arguments
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument
from deltalog.html import Facts
from deltalog.table.handle import TableHandle

__all__ = [
    "StreamArguments",
    "StreamBacklog",
    "StreamBatch",
    "StreamLimits",
    "TableStream",
    "TableStreams",
    "Tracking",
]


class Tracking(NamedTuple):
    """Where a stream records the schemas with which it reads, and the schema changes that the user allows."""

    location: str
    store: StoreOptions | None = None
    id: str | None = None
    """An id that distinguishes several streams that read the same table and use the same location."""
    source: str | None = None
    """The path that Spark gives to the source within the query's checkpoint."""
    allowed: tuple[tuple[str, str], ...] = ()
    """Pairs of a change (`rename`, `drop`, `type_change`) and the version that may make it, or `always`."""


class StreamArguments(NamedTuple):
    """What a stream reads, as an argument of the compiled module."""

    start_version: int | None = None
    start_timestamp_ms: int | None = None
    starts_with_next: bool = False
    is_pinned: bool = False
    """Whether `start_version` was determined earlier and saved. Its commit may then still be in the future."""
    change_commits: str = "refuse"
    change_feed: bool = False
    exclude: str | None = None
    tolerate_loss: bool = False
    pause: timedelta | None = None
    tracking: Tracking | None = None


class StreamLimits(NamedTuple):
    """The limits of a batch."""

    files: int | None = None
    bytes: int | None = None
    is_unlimited: bool = False


@dataclass(frozen=True)
class StreamBacklog(Facts):
    """How much a stream still has to read after an offset, as far as the stream has listed commits."""

    versions: int
    """The number of versions, including a version that was only partly read."""
    files: int
    """The number of files in the first snapshot, and in commits that the stream has already listed."""
    bytes: int
    """The total size of these files."""


class StreamBatch:
    """The rows of a stream between two offsets. Every library that accepts Arrow streams accepts a `StreamBatch`.

    The rows are read from the files each time they are requested. A batch may have no rows.
    """

    def __init__(
        self, stream: _internal.TableStream, start: str | None, offset: str, columns: list[str] | None
    ) -> None:
        self._stream = stream
        self._start = start
        self._offset = offset
        self._columns = columns

    @property
    def offset(self) -> str:
        """The offset at the end of this batch. Store it together with its rows, and pass it as `start` next time."""
        return self._offset

    def to_arrow(self) -> _internal.ArrowStream:
        """Returns the rows as an Arrow stream.

        Raises:
            MissingFileError: a data file is missing, for example after a vacuum.
            CorruptDataError: a data file cannot be read.
        """
        return self._stream.read(self._start, self._offset, self._columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"StreamBatch(offset={self._offset!r})"


@checks_arguments
class TableStream:
    """The rows of a table as a sequence of batches, in which each row occurs once. See `DeltaTable.stream`.

    A stream is an iterator of `StreamBatch`, and a context manager that closes it. Only one thread may ask for
    batches; any thread may close the stream.
    """

    def __init__(
        self,
        stream: _internal.TableStream,
        offset: str | None,
        limits: StreamLimits,
        columns: list[str] | None,
    ) -> None:
        self._stream = stream
        self._offset = offset
        self._limits = limits
        self._columns = columns

    @property
    def offset(self) -> str | None:
        """The offset of the last batch that was returned; None before the first."""
        return self._offset

    def poll(self, timeout: float | timedelta | None = 0) -> StreamBatch | None:
        """Returns the next batch, or None if there is none within `timeout`.

        With a `timeout` of 0, the stream looks for new commits at most once, and not at all if less than
        `poll_interval` has passed since it last looked. With None, the method waits until there is a batch, or the
        stream is closed.

        Args:
            timeout: a timedelta or a number of seconds.

        Raises:
            DeltaError: the same errors as `__next__`.
        """
        start, patience = self._offset, span_argument(timeout, "timeout")
        if start is not None:
            # The caller has handled the rows up to `start`, so the stream can discard what it has read of the log for
            # them.
            self._stream.release(start)
        end = self._stream.wait(start, self._limits, patience)
        if end is None:
            return None
        self._offset = end
        return StreamBatch(self._stream, start, end, self._columns)

    def backlog(self) -> StreamBacklog | None:
        """Returns how much there is to read after the last batch; None before the first batch. Sends no request to the
        store.
        """
        return None if self._offset is None else StreamBacklog(*self._stream.backlog(self._offset))

    def close(self) -> None:
        """Closes the stream: there are no further batches, and a thread that waits for one returns."""
        self._stream.close()

    def __iter__(self) -> Iterator[StreamBatch]:
        return self

    def __next__(self) -> StreamBatch:
        """Returns the next batch. Waits for it if the stream was opened with `follow=True`.

        Raises:
            VersionNotFoundError: a commit was cleaned up before the stream read it, or the start is not in the log;
                the message lists the readable versions.
            TableReplacedError: the offset belongs to another table, or the table was replaced.
            UnsupportedFeatureError: a commit changes rows; see `change_commits` of `DeltaTable.stream`.
            SchemaMismatchError: a commit changes the schema. The hint states whether a new stream can continue at the
                last offset.
        """
        batch = self.poll(None)
        if batch is None:
            raise StopIteration
        return batch

    def __enter__(self) -> "TableStream":
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TableStream('{self._stream.snapshot.uri}', offset={self._offset!r})"


@checks_arguments
class TableStreams(TableHandle):
    """The method `stream` of `DeltaTable`."""

    def stream(
        self,
        start: str | int | datetime | None = None,
        *,
        columns: Names | None = None,
        follow: bool = False,
        max_files: int | None = None,
        max_bytes: int | None = None,
        change_commits: Literal["refuse", "ignore_deletes", "ignore", "skip"] = "refuse",
        change_feed: bool = False,
        exclude: str | None = None,
        tolerate_loss: bool = False,
        poll_interval: float | timedelta = 1.0,
        schema_location: str | os.PathLike[str] | None = None,
        allow_schema_changes: Mapping[str, str | int] | None = None,
    ) -> TableStream:
        """Returns an iterator of batches: first all rows of the table, then the rows that each later commit adds.

        Each batch has an `offset`. Store it together with the result of processing the rows, in one transaction if
        possible, and pass it as `start` the next time. Each row is then handled exactly once. The offsets have the
        format of the JVM connector, and either connector can continue at an offset of the other.

        The rows have the schema of the newest version, or of the table's own version if it was opened by `version` or
        `timestamp`. Commits that only move rows, such as OPTIMIZE, add no rows to the stream.

        Args:
            start: where to begin. None begins with all rows of the table, the `offset` of a batch continues after that
                batch, a version or a time (a `datetime`, or text in ISO 8601) begins with its commit, and `"latest"`
                begins with the next commit.
            columns: the columns to read, in this order; None for all.
            follow: wait for new commits. Otherwise the stream ends with the version that is the newest when the first
                batch is requested.
            max_files: the maximum number of files in a batch; 1,000 if neither this nor `max_bytes` is given.
            max_bytes: a size in bytes. A batch is complete when its files have at least this total size.
            change_commits: what to do with a commit that deletes or updates rows. `"refuse"` raises an error.
                `"ignore_deletes"` skips commits that only remove files. `"ignore"` also accepts commits that rewrite
                files, and returns all rows of the new files, including rows that were returned before. `"skip"` skips
                all commits that delete or update rows.
            change_feed: read the rows that each commit inserted, updated and deleted, as `load_cdf` does, with the
                columns `_change_type`, `_commit_version` and `_commit_timestamp`. The rows that the table has at the
                beginning are returned as inserts of the version at which the stream begins. The two rows of an update
                are always in the same batch.
            exclude: a regular expression. Files are left out if it matches any part of their path in the log.
            tolerate_loss: skip commits that were cleaned up before they were read, instead of raising an error. Their
                rows are lost. Cannot be combined with `schema_location`.
            poll_interval: the time between two checks for new commits, in seconds or as a timedelta.
            schema_location: a directory in which the stream records the schemas with which it reads. The stream can
                then continue after any schema change: it raises `SchemaMismatchError` once, before the change, and
                a new stream that starts at the last offset reads the rows after it.
            allow_schema_changes: for a stream with `schema_location`, the schema changes after which it may continue
                although they remove or change columns: `"rename"`, `"drop"` and `"type_change"`, each with `"always"`
                or the version that makes the change.

        Raises:
            InvalidArgumentError: `start` is not a valid offset, or there is no such column.
            DeltaError: as for `TableStream.__next__`, when a batch is requested.
        """
        files = (
            None if max_files is None else whole_argument(max_files, "max_files", "a whole number from 1", 1)
        )
        offset, arguments = _start(start)
        arguments = arguments._replace(
            change_commits=change_commits.lower(),
            change_feed=bool(change_feed),
            exclude=exclude,
            tolerate_loss=tolerate_loss,
            pause=span_argument(poll_interval, "poll_interval"),
            tracking=_tracking(schema_location, allow_schema_changes),
        )
        opened = self._opened
        snapshot = self._snapshot if opened.is_pinned else self._snapshot.refresh()
        stream = _internal.TableStream(snapshot, arguments)
        if not follow:
            stream.end_at_newest()
        limits = StreamLimits(files, size_argument(max_bytes, "max_bytes"))
        return TableStream(stream, offset, limits, columns_argument(columns))


def _tracking(
    location: str | os.PathLike[str] | None, allowed: Mapping[str, str | int] | None
) -> Tracking | None:
    """Returns the schema log of a stream, or None if `schema_location` was not passed."""
    if location is None:
        if allowed is not None:
            refused = InvalidArgumentError("allow_schema_changes has no effect without schema_location")
            raise hinted(
                refused, "also pass schema_location, a directory in which the stream records schemas"
            )
        return None
    place = location_argument(location, "schema_location")
    if not isinstance(allowed, (Mapping, type(None))):
        raise wrong_argument(
            "allow_schema_changes", allowed, "a dictionary, such as {'rename': 'always', 'drop': 7}"
        )
    pairs = tuple((str(change), str(version)) for change, version in (allowed or {}).items())
    return Tracking(place, source=place, allowed=pairs)


def _start(start: str | int | datetime | None) -> tuple[str | None, StreamArguments]:
    """Returns two values: the offset at which a stream continues, or None, and the arguments that determine where a new
    stream begins.
    """
    if start is None:
        return None, StreamArguments()
    if isinstance(start, str) and start.lstrip().startswith("{"):
        return start, StreamArguments()
    if isinstance(start, str) and start.lower() == "latest":
        return None, StreamArguments(starts_with_next=True)
    if isinstance(start, (str, datetime)):
        try:
            time = timestamp_argument(start, "start", round_up=True)
        except InvalidArgumentError as error:
            raise wrong_argument("start", start, _EXPECTED_START) from error
        return None, StreamArguments(start_timestamp_ms=time)
    return None, StreamArguments(start_version=whole_argument(start, "start", _EXPECTED_START, 0))


_EXPECTED_START = "the offset of a batch, a version, a time, or 'latest'"
