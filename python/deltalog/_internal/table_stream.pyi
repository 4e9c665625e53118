"""The rows of a table, or its changes, as a sequence of batches."""

from collections.abc import Sequence
from datetime import timedelta
from typing import final

from deltalog._internal.snapshot import Snapshot
from deltalog._internal.stream import ArrowStream
from deltalog.table.stream import StreamArguments, StreamLimits

@final
class TableStream:
    """The rows of a table as a sequence of batches. Offsets are JSON strings in the JVM connector's format."""

    def __new__(cls, snapshot: Snapshot, arguments: StreamArguments) -> TableStream: ...
    @property
    def snapshot(self) -> Snapshot:
        """The version whose schema the rows have."""
    def start(self) -> int | None:
        """Returns the version of the commit with which the stream begins; None if it begins with a snapshot."""
    def latest(self, start: str | None, limits: StreamLimits) -> str | None:
        """Returns the offset at the end of the batch that begins at `start`. If `start` is None, the batch begins where
        the stream begins.

        Returns `start` itself if there are no new rows, and None if a new stream has no rows yet.
        """
    def wait(self, start: str | None, limits: StreamLimits, patience: timedelta | None) -> str | None:
        """Does the same as `latest`, but waits for new rows. Returns None if the wait has timed out, or if the stream
        has ended or was closed.
        """
    def read(self, start: str | None, end: str, columns: Sequence[str] | None) -> ArrowStream:
        """Returns the rows between two offsets."""
    def partitions(self, start: str | None, end: str, n: int) -> list[bytes]:
        """Divides the files between two offsets of a stream of rows into at most `n` fragments.

        Other processes read the fragments with `read_fragment`. They contain no credentials.
        """
    def end_at_newest(self) -> None:
        """Makes the stream end after the version that is the newest one when `latest` is called next."""
    def release(self, end: str) -> None:
        """Frees memory that is only needed for batches up to this offset."""
    def close(self) -> None:
        """Closes the stream. Calls of `wait` in all threads return, and later calls return at once."""
    def backlog(self, offset: str) -> tuple[int, int, int]:
        """Returns the numbers of versions, files and bytes after an offset, as far as they are known."""
    def newest(self) -> str:
        """Returns the offset after the last version that the stream has listed."""
