"""The options of a stream that reads a table."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deltalog.arguments import StoreOptions
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import location_of
from deltalog.spark.options import LARGEST_NUMBER, Options, whole_number
from deltalog.spark.streams.known_options import ensure_known
from deltalog.table.stream import StreamArguments, StreamLimits, Tracking

_FLAGS = (
    "failOnDataLoss",
    "ignoreChanges",
    "ignoreDeletes",
    "ignoreFileDeletion",
    "readChangeData",
    "readChangeFeed",
    "skipChangeCommits",
)
# The options that allow schema changes, with the change that each allows.
_ALLOWING = {
    "allowSourceColumnDrop": "drop",
    "allowSourceColumnRename": "rename",
    "allowSourceColumnTypeChange": "type_change",
}
_TRACKING = ("schemaTrackingLocation", "schemaLocation")
_OF_SESSION = "spark.databricks.delta.streaming."
_NAMES = (
    *_FLAGS,
    *_ALLOWING,
    *_TRACKING,
    "allowedRoots",
    "datetimeRebaseMode",
    "excludeRegex",
    "ignoreCorruptFiles",
    "ignoreMissingFiles",
    "int96RebaseMode",
    "maxBytesPerTrigger",
    "maxFilesPerTrigger",
    "path",
    "startingTimestamp",
    "startingVersion",
    "streamingSourceTrackingId",
)
_ALL_VERSIONS = "a stream reads one version after the other: begin with startingVersion or startingTimestamp"
_NO_END = "a stream has no end: use the trigger availableNow to stop at the newest version"
# Options of batch reads, by their names in lower case: the usual spelling, and what to use for a stream instead.
_WRONG = {
    "versionasof": ("versionAsOf", _ALL_VERSIONS),
    "timestampasof": ("timestampAsOf", _ALL_VERSIONS),
    "endingversion": ("endingVersion", _NO_END),
    "endingtimestamp": ("endingTimestamp", _NO_END),
}
_EVENT_TIME = "withEventTimeOrder"
_LATEST = "latest"
_SIZE = re.compile(r"\s*(\d+)\s*([kmgtp]?)b?\s*", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


Bound = Callable[[Options], tuple[int | None, int | None]]
"""Returns the start that the options ask for: a version, a time in milliseconds, or neither."""


def check(options: Options, refused: Mapping[str, str] | None = None) -> None:
    """Raises an error for options that are unknown or do not apply to streams.

    Args:
        refused: options that the Python data source does not support, each with what to do instead.
    """
    spelled_refused = {name.lower(): (name, instead) for name, instead in (refused or {}).items()}
    for name in sorted(options.values):
        if name in spelled_refused:
            spelled, instead = spelled_refused[name]
            raise UnsupportedFeatureError(
                f"streams of the Python data source do not support the option {spelled} (table {options.path}); "
                f"{instead}"
            )
        if name in _WRONG:
            spelled, instead = _WRONG[name]
            raise InvalidArgumentError(
                f"the option {spelled} does not apply to a stream (table {options.path}); {instead}"
            )
        if name == _EVENT_TIME.lower():
            raise UnsupportedFeatureError(
                f"the option {_EVENT_TIME} only works on Databricks (table {options.path}); leave it out"
            )
    ensure_known(options, _NAMES)
    if is_tracked(options) and options.is_true("failOnDataLoss") is False:
        raise InvalidArgumentError(
            "a stream that records schemas (schemaTrackingLocation) cannot skip commits that were cleaned up, because "
            f"one of them may have changed the schema (table {options.path}); leave out failOnDataLoss"
        )


def arguments_of(options: Options, bound: Bound) -> tuple[StreamArguments, StreamLimits]:
    """Returns what a stream with these options reads, and the limits of its batches. `tracking` is not set."""
    try:
        return content_of(options, bound), limits_of(options)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error} (table {options.path})") from None


def content_of(options: Options, bound: Bound) -> StreamArguments:
    """Returns which versions and rows a stream with these options reads; `tracking` is not set yet."""
    flags = {name: options.is_true(name) for name in _FLAGS}
    start_version, start_timestamp_ms, starts_with_next = _start(options, bound)
    changes = "refuse"
    if flags["skipChangeCommits"]:
        changes = "skip"
    elif flags["ignoreChanges"] or flags["ignoreFileDeletion"]:
        changes = "ignore"
    elif flags["ignoreDeletes"]:
        changes = "ignore_deletes"
    return StreamArguments(
        start_version=start_version,
        start_timestamp_ms=start_timestamp_ms,
        starts_with_next=starts_with_next,
        change_commits=changes,
        change_feed=bool(flags["readChangeFeed"] or flags["readChangeData"]),
        exclude=options.values.get("excluderegex"),
        tolerate_loss=flags["failOnDataLoss"] is False,
    )


def _start(options: Options, bound: Bound) -> tuple[int | None, int | None, bool]:
    if {"startingversion", "startingtimestamp"} <= options.values.keys():
        raise InvalidArgumentError(
            "startingVersion and startingTimestamp cannot be used together: leave out one of them"
        )
    if options.values.get("startingversion", "").strip().lower() == _LATEST:
        return None, None, True
    return *bound(options), False


def is_tracked(options: Options) -> bool:
    """Returns whether the options ask for a log of the schemas with which the stream reads."""
    return any(name.lower() in options.values for name in _TRACKING)


def tracking_of(jvm: Jvm, session: Any, options: Options, place: str | None) -> Tracking | None:
    """Returns the schema log that the options ask for, or None.

    Args:
        place: the path that Spark gives to the source within the query's checkpoint; None before the query is started.
    """
    found = (options.values.get(name.lower()) for name in _TRACKING)
    path = next((value for value in found if value is not None), None)
    if path is None:
        return None
    location = location_of(jvm, session, Options({**options.values, "path": path}))
    return Tracking(
        location.uri,
        StoreOptions(dict(location.storage_options or {})),
        options.values.get("streamingsourcetrackingid"),
        place,
        tuple(_allowed(session, options)),
    )


def _allowed(session: Any, options: Options) -> Iterator[tuple[str, str]]:
    """Yields the schema changes that the options and the session allow: the kind, and the version or `always`."""
    settings = session.sessionState().conf()
    for name, change in _ALLOWING.items():
        names = [name]
        if change != "type_change":
            names.append("allowSourceColumnRenameAndDrop")
        values = [settings.getConfString(_OF_SESSION + each, None) for each in names]
        for value in (options.values.get(name.lower()), *values):
            if value is not None:
                yield change, value


def limits_of(options: Options) -> StreamLimits:
    """Returns the limits of a batch that the options set."""
    files, size = (options.values.get(name) for name in ("maxfilespertrigger", "maxbytespertrigger"))
    return StreamLimits(
        None
        if files is None
        else _positive("maxFilesPerTrigger", files, whole_number(files), "a number of files"),
        None if size is None else _positive("maxBytesPerTrigger", size, _bytes(size), "a size such as 10g"),
    )


def _positive(name: str, text: str, value: int | None, expected: str) -> int:
    if not value:
        raise InvalidArgumentError(f"{name} must be {expected}, from 1 to 2^63 - 1, not {text!r}")
    return value


def _bytes(text: str) -> int | None:
    found = _SIZE.fullmatch(text)
    number = None if found is None else whole_number(found[1])
    if found is None or number is None:
        return None
    size = number << _UNITS[found[2].lower()]
    return size if size <= LARGEST_NUMBER else None
