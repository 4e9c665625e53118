"""The first version of a stream that has `startingVersion` = `latest` (the next commit) or `startingTimestamp`.

This version depends on the time at which the stream is opened, so it is determined only once. `KeptStart.java` saves it
in the query's checkpoint. A query that stops before its first batch is finished then begins with the same version when
it is restarted.
"""

import json
from typing import NamedTuple

from deltalog._internal import TableStream
from deltalog.arguments import whole_argument
from deltalog.errors import InvalidArgumentError, TableReplacedError, hinted
from deltalog.spark.options import Options
from deltalog.table.stream import StreamArguments

_OPTIONS = ("startingVersion", "startingTimestamp")


class KeptStart(NamedTuple):
    """The first version of a stream, with the options from which it was determined."""

    asked: dict[str, str]
    """The options `startingVersion` and `startingTimestamp`, if they were set."""
    table_id: str
    version: int

    def to_json(self) -> str:
        return json.dumps({**self.asked, "tableId": self.table_id, "version": self.version})

    @classmethod
    def of_json(cls, text: str, uri: str) -> "KeptStart":
        """Parses the saved start of a stream of the table `uri`."""
        try:
            parts = json.loads(text)
            asked = {name: parts[name] for name in _OPTIONS if name in parts}
            return cls(asked, parts["tableId"], whole_argument(parts["version"], "version", "a version", 0))
        except (LookupError, TypeError, ValueError) as failure:
            error = InvalidArgumentError(
                f"deltalog-start.json in the checkpoint does not contain the start of a stream (table {uri}): {text!r}"
            )
            raise hinted(error, "begin with a new checkpoint, or restore the file") from failure

    @classmethod
    def found(cls, stream: TableStream, options: Options, text: str | None) -> "KeptStart | None":
        """Returns the saved start, or else determines it now. Returns None if the stream begins with a snapshot.

        Args:
            text: the saved start, as JSON. It is ignored if the user has changed the options since.
        """
        asked = {name: options.values[name.lower()] for name in _OPTIONS if name.lower() in options.values}
        snapshot = stream.snapshot
        if text is not None:
            kept = cls.of_json(text, snapshot.uri)
            if kept.asked == asked:
                kept._ensure_of(snapshot.uri, snapshot.table_id)
                return kept
        version = stream.start()
        return None if version is None else cls(asked, snapshot.table_id, version)

    def _ensure_of(self, uri: str, table_id: str) -> None:
        if self.table_id != table_id:
            error = TableReplacedError(
                f"according to its checkpoint, the stream begins with version {self.version} of the table with the id "
                f"{self.table_id}, but the table at this location has the id {table_id} (table {uri})"
            )
            raise hinted(
                error, "begin with a new checkpoint, or read the table that the stream was started on"
            )


def asks_to_find(content: StreamArguments) -> bool:
    """Returns whether the first version of a stream depends on the time at which the stream is opened."""
    return content.starts_with_next or content.start_timestamp_ms is not None


def pinned(content: StreamArguments, version: int) -> StreamArguments:
    """Returns `content` with this first version, which may not be committed yet."""
    return content._replace(
        start_version=version, start_timestamp_ms=None, starts_with_next=False, is_pinned=True
    )
