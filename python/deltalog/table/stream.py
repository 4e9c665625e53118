"""The rows of a table as a sequence of batches, each row once."""

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
    """Where a stream notes the schemas with which it reads."""

    location: str
    store: StoreOptions | None = None
    id: str | None = None
    """Tells streams apart that read the same table and note schemas at the same location."""
    source: str | None = None
    """The path that Spark gives to the source within a query's checkpoint."""
    allowed: tuple[tuple[str, str], ...] = ()
    """Changes (`rename`, `drop`, `type_change`), and the version that they are allowed for, or `always`."""


class StreamArguments(NamedTuple):
    """What a stream reads, in the form that the binary takes."""

    start_version: int | None = None
    start_timestamp_ms: int | None = None
    starts_with_next: bool = False
    is_pinned: bool = False
    """Whether `start_version` is where the stream was found to begin, so that it need not be there yet."""
    change_commits: str = "refuse"
    change_feed: bool = False
    exclude: str | None = None
    tolerate_loss: bool = False
    pause: timedelta | None = None
    tracking: Tracking | None = None


class StreamLimits(NamedTuple):
    """How much a batch may have."""

    files: int | None = None
    bytes: int | None = None
    is_unlimited: bool = False


@dataclass(frozen=True)
class StreamBacklog:
    """What comes after an offset of a stream, as far as the stream has seen it."""

    versions: int
    """The versions, among them the one in which the offset stands."""
    files: int
    """The files of the snapshot with which the stream began, and of those commits that it has read."""
    bytes: int
    """Their size."""


class StreamBatch:
    """The rows of a stream between two offsets: an object for everything that takes Arrow streams.

    They are read when they are asked for, and again for each time. A batch may have no rows.
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
        """The place in the stream after this batch: what to keep with its rows, and to pass as `start` next time."""
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
    """The rows of a table as a sequence of batches, each row once: see `DeltaTable.stream`.

    It is an iterator of `StreamBatch`, and a context manager that closes it. Only one thread may ask for batches; any
    thread may close it.
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
        """The place after the last batch that was returned; None before the first."""
        return self._offset

    def poll(self, timeout: float | timedelta | None = 0) -> StreamBatch | None:
        """Returns the next batch, or None if there is none within `timeout`.

        Without time it looks at the table once, at most as often as the stream's `poll_interval` says. A `timeout` of
        None waits until there is something new, or the stream is closed.

        Args:
            timeout: a timedelta or a number of seconds.

        Raises:
            DeltaError: as `__next__`.
        """
        start, patience = self._offset, span_argument(timeout, "timeout")
        if start is not None:
            # The rows up to there were handled, so that what was read for them is not needed any more.
            self._stream.release(start)
        end = self._stream.wait(start, self._limits, patience)
        if end is None:
            return None
        self._offset = end
        return StreamBatch(self._stream, start, end, self._columns)

    def backlog(self) -> StreamBacklog | None:
        """Returns how much of the table comes after the last batch; None before the first. Does not ask the store."""
        return None if self._offset is None else StreamBacklog(*self._stream.backlog(self._offset))

    def close(self) -> None:
        """Ends the stream: a wait for the next batch ends, in any thread, and there are no further batches."""
        self._stream.close()

    def __iter__(self) -> Iterator[StreamBatch]:
        return self

    def __next__(self) -> StreamBatch:
        """Returns the next batch; waits for it if the stream follows the table.

        Raises:
            VersionNotFoundError: a commit was cleaned up before the stream has read it, or the start is not in the
                log; the message lists the readable versions.
            TableReplacedError: the offset belongs to another table, or the table was replaced.
            UnsupportedFeatureError: a commit changes rows; see `change_commits` of `DeltaTable.stream`.
            SchemaMismatchError: a commit changes the schema. The hint says whether a stream that is opened again at
                the last offset goes on.
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
    """The rows of a table as a stream."""

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
        """Returns the rows of the table as an iterator of batches: all that it has, and then the rows of each commit.

        Each batch has an `offset`. Keep it together with what was made of the rows, in one transaction if that is
        possible, and pass it as `start` the next time: then each row is handled once. Offsets have the form of the JVM
        connector's, and go from one to the other.

        Rows have the schema of the newest version, or of this one if it was opened by `version` or `timestamp`.
        Commits that only move rows (OPTIMIZE) have none.

        Args:
            start: None for all rows of the table first; the offset of a batch; a version, or a time (a `datetime`, or
                text in ISO 8601), whose commit is the first; `"latest"` for the next commit.
            columns: the columns to read, in this order; all if None.
            follow: wait for new commits, instead of ending with the version that is the newest when the first batch is
                asked for.
            max_files: the most files of a batch; 1,000 if neither this nor `max_bytes` is given.
            max_bytes: the size of files after which a batch ends. It has at least one file.
            change_commits: what to do with a commit that deletes or updates rows: `"refuse"` raises,
                `"ignore_deletes"` passes over commits that only remove files, `"ignore"` also reads all rows of files
                that were written again, which are duplicates then, and `"skip"` passes over all of these commits.
            change_feed: read what each commit has inserted, updated and deleted, as `load_cdf` does, with the columns
                `_change_type`, `_commit_version` and `_commit_timestamp`. The rows that the table has at first are
                inserts of its version. The two rows of an update are never in different batches.
            exclude: a regular expression; files whose path in the log it matches somewhere are left out.
            tolerate_loss: pass over commits that were cleaned up before they were read, instead of raising. Their rows
                are lost. Not with `schema_location`.
            poll_interval: how long to wait between two looks for new commits, in seconds or as a timedelta.
            schema_location: a directory in which the stream notes the schemas with which it reads. Then it goes on
                after any change of the schema: it raises `SchemaMismatchError` once before the change, and a stream
                that is opened at the last offset reads the rows after it.
            allow_schema_changes: the changes that such a stream goes on after although columns are lost: `"rename"`,
                `"drop"` and `"type_change"`, each with `"always"` or the version that made the change.

        Raises:
            InvalidArgumentError: `start` is no offset, or there is no such column.
            DeltaError: as `TableStream.__next__`, when batches are asked for.
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
    """Returns where a stream notes schemas, if it does."""
    if location is None:
        if allowed is not None:
            refused = InvalidArgumentError("allow_schema_changes has no meaning without schema_location")
            raise hinted(refused, "pass the directory in which the stream notes schemas, too")
        return None
    place = location_argument(location, "schema_location")
    if not isinstance(allowed, (Mapping, type(None))):
        raise wrong_argument(
            "allow_schema_changes", allowed, "a dictionary, such as {'rename': 'always', 'drop': 7}"
        )
    pairs = tuple((str(change), str(version)) for change, version in (allowed or {}).items())
    return Tracking(place, source=place, allowed=pairs)


def _start(start: str | int | datetime | None) -> tuple[str | None, StreamArguments]:
    """Returns the offset at which a stream begins, if there is one, and else where it begins."""
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
