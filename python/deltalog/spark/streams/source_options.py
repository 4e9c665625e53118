"""The options of a stream that reads a table.

Unknown options are refused: it would not be noticed that an option has no effect in a query that runs for weeks.
"""

import difflib
import re
from typing import Any

from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.options import Options
from deltalog.spark.read.relation import bound_of
from deltalog.table.stream import StreamArguments, StreamLimits

_FLAGS = ("ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits", "failOnDataLoss")
_NAMES = {
    name.lower(): name
    for name in (
        *_FLAGS,
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
    )
}
_ALL_VERSIONS = "a stream reads one version after the other: begin with startingVersion or startingTimestamp"
_NO_END = "a stream has no end: use the trigger availableNow to stop at the newest version"
# Options of other reads, and what to do instead.
_WRONG = {
    "versionasof": ("versionAsOf", _ALL_VERSIONS),
    "timestampasof": ("timestampAsOf", _ALL_VERSIONS),
    "endingversion": ("endingVersion", _NO_END),
    "endingtimestamp": ("endingTimestamp", _NO_END),
}
_UNSUPPORTED = {
    name.lower(): name
    for name in (
        "allowSourceColumnDrop",
        "allowSourceColumnRename",
        "allowSourceColumnTypeChange",
        "readChangeData",
        "readChangeFeed",
        "schemaLocation",
        "schemaTrackingLocation",
        "streamingSourceTrackingId",
        "withEventTimeOrder",
    )
}
_LATEST = "latest"
_SIZE = re.compile(r"\s*(\d+)\s*([kmgtp]?)b?\s*", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def check(options: Options) -> None:
    """Raises an error for options that do not apply to streams or are not known."""
    for name in sorted(options.values):
        if name in _WRONG:
            spelled, instead = _WRONG[name]
            raise InvalidArgumentError(
                f"the option {spelled} does not apply to a stream (table {options.path}); {instead}"
            )
        if name in _UNSUPPORTED:
            raise UnsupportedFeatureError(
                f"the option {_UNSUPPORTED[name]} is not supported yet by deltalog for streams (table {options.path})"
            )
        if not _is_known(name, options):
            near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.7)
            hint = f"did you mean {_NAMES[near[0]]}?" if near else f"known are {', '.join(_NAMES.values())}"
            raise InvalidArgumentError(
                f"the option {name} is not known for streams (table {options.path}); {hint}"
            )


def _is_known(name: str, options: Options) -> bool:
    # Names with dots are settings of Hadoop, of Parquet or of Spark's own.
    return name in _NAMES or name in options.storage or "." in name or name.startswith("__")


def content_of(jvm: Jvm, session: Any, options: Options) -> StreamArguments:
    """Returns what the options ask for."""
    flags = {name: options.is_true(name) for name in _FLAGS}
    start_version, start_timestamp_ms, starts_with_next = _start(jvm, session, options)
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
        exclude=options.values.get("excluderegex"),
        tolerate_loss=flags["failOnDataLoss"] is False,
    )


def _start(jvm: Jvm, session: Any, options: Options) -> tuple[int | None, int | None, bool]:
    if {"startingversion", "startingtimestamp"} <= options.values.keys():
        raise InvalidArgumentError(
            f"startingVersion and startingTimestamp cannot be used together (table {options.path}); leave out one"
        )
    if options.values.get("startingversion", "").strip().lower() == _LATEST:
        return None, None, True
    return *bound_of(jvm, session, options, "starting"), False


def limits_of(options: Options) -> StreamLimits:
    """Returns the limits that the options set."""
    files, size = (options.values.get(name) for name in ("maxfilespertrigger", "maxbytespertrigger"))
    return StreamLimits(
        None if files is None else _positive("maxFilesPerTrigger", files, _count(files), "a number of files"),
        None if size is None else _positive("maxBytesPerTrigger", size, _bytes(size), "a size such as 10g"),
    )


def _positive(name: str, text: str, value: int | None, expected: str) -> int:
    if not value:
        raise InvalidArgumentError(f"{name} must be {expected}, at least 1, not {text!r}")
    return value


def _count(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def _bytes(text: str) -> int | None:
    found = _SIZE.fullmatch(text)
    return None if found is None else int(found[1]) << _UNITS[found[2].lower()]
