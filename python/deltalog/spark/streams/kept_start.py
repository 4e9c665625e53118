"""Where a stream begins whose options name no version: with the next commit, or with a time.

What that means is found out once. The checkpoint of the query keeps it (`KeptStart.java`), so that a query that ends
before its first batch is done begins with the same commit when it is started again.
"""

import json
from typing import NamedTuple

from deltalog._internal import TableStream
from deltalog.errors import TableReplacedError, hinted
from deltalog.spark.options import Options
from deltalog.table.stream import StreamArguments

_OPTIONS = ("startingVersion", "startingTimestamp")


class KeptStart(NamedTuple):
    """The start of a stream, as it was found once."""

    asked: dict[str, str]
    """The options that it was found for."""
    table_id: str
    version: int

    def to_json(self) -> str:
        return json.dumps({**self.asked, "tableId": self.table_id, "version": self.version})

    @classmethod
    def of_json(cls, text: str) -> "KeptStart":
        parts = json.loads(text)
        asked = {name: parts[name] for name in _OPTIONS if name in parts}
        return cls(asked, parts["tableId"], parts["version"])

    @classmethod
    def found(cls, stream: TableStream, options: Options, text: str | None) -> "KeptStart | None":
        """Returns the start that was kept, or that is found now; None for a stream that begins with a snapshot.

        Args:
            text: what was kept. It does not count if the options ask for another start by now.
        """
        asked = {name: options.values[name.lower()] for name in _OPTIONS if name.lower() in options.values}
        snapshot = stream.snapshot
        if text is not None:
            kept = cls.of_json(text)
            if kept.asked == asked:
                kept._ensure_of(snapshot.uri, snapshot.table_id)
                return kept
        version = stream.start()
        return None if version is None else cls(asked, snapshot.table_id, version)

    def _ensure_of(self, uri: str, table_id: str) -> None:
        if self.table_id != table_id:
            error = TableReplacedError(
                f"the stream was to begin with version {self.version} of the table with the id {self.table_id}, but "
                f"the table here has the id {table_id} (table {uri}, version {self.version})"
            )
            raise hinted(
                error, "begin with a new checkpoint, or read the table with which the stream was begun"
            )


def asks_to_find(content: StreamArguments) -> bool:
    """Returns whether where a stream begins depends on when it is opened."""
    return content.starts_with_next or content.start_timestamp_ms is not None


def pinned(content: StreamArguments, version: int) -> StreamArguments:
    """Returns what a stream reads that begins with the commit of this version, which need not be there yet."""
    return content._replace(
        start_version=version, start_timestamp_ms=None, starts_with_next=False, is_pinned=True
    )
