"""`DeltaTable.clone` and `convertToDelta` under Spark Connect. The server's driver copies files, and reads footers.

- Locations are paths: a client cannot create entries in the server's catalog.
- The server may execute a command twice. A clone records its request in its commit, so that a repetition is recognized.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from deltalog._internal import (
    CommitConflictError,
    Snapshot,
    TableAlreadyExistsError,
    clone_table,
    table_exists,
)
from deltalog.clone import CloneArguments
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.spark.connect.place import Place, place_of
from deltalog.spark.options import Options

_REQUEST = "requestId"
# The number of newest commits that are searched for the commit of a clone.
_COMMITS = 100


class CloneCommand(NamedTuple):
    """The arguments of the command that creates a clone."""

    target: str
    """The path of the clone; if the server uses our catalog, it may also be a name."""
    shallow: bool
    mode: str
    """`overwrite` or `error`."""
    version: int | None
    timestamp_ms: int | None
    properties: dict[str, str]
    request: str
    """The unique id of the request."""
    user_metadata: str | None

    def source(self, newest: Snapshot) -> Snapshot:
        """Returns the version that is cloned."""
        is_dated = self.version is not None or self.timestamp_ms is not None
        return newest.at(self.version, self.timestamp_ms) if is_dated else newest


def clone(options: Options, open_source: Callable[[], Snapshot], **arguments: Any) -> None:
    """Creates a clone at a path, which is accessed with the options of the source."""
    command = CloneCommand(**arguments)
    place = _beside(options, command.target)
    if _has_cloned(place, command.request):
        return
    source = command.source(open_source())
    asked = CloneArguments(
        command.shallow, command.mode, command.properties, storage_options=place.storage_options
    )
    properties = CommitProperties(custom_metadata={_REQUEST: command.request})
    commit = commit_arguments(properties, command.user_metadata)
    try:
        clone_table(source, place.uri, asked, commit)
    except (TableAlreadyExistsError, CommitConflictError):
        # Another execution of the same command may have created the clone already.
        if not _has_cloned(place, command.request):
            raise


def _beside(options: Options, path: str) -> Place:
    local = place_of(Options({"path": path})) if path.startswith(("/", "file:")) else None
    return local or place_of(Options({**options.storage, "path": path}))


def _has_cloned(place: Place, request: str) -> bool:
    if not table_exists(place.uri, place.storage_options):
        return False
    newest = Snapshot.open(place.uri, storage_options=place.storage_options)
    return any(json.loads(commit).get(_REQUEST) == request for commit in newest.history_json(_COMMITS))


def convert(
    options: Options,
    open_source: Callable[[], Snapshot],
    *,
    partition_by: str | None,
    time_zone: str,
    user_metadata: str | None,
) -> None:
    """Converts the directory that the options name to a table. If the server repeats the command, the directory is
    already a table, and nothing is committed.
    """
    from deltalog.spark.sql.convert import Directory, converted

    place = place_of(options)
    converted(Directory(place.uri, place.storage_options, partition_by, user_metadata, time_zone), None, {})
