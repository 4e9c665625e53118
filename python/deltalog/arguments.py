"""Checks arguments that users pass, and converts them for the compiled module.

The error message of each function names the parameter, and the hint states what to pass. Parameters that can be checked
by their annotations alone are checked by `deltalog.checked`.
"""

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, TypeAlias, cast

from deltalog.arrow_data import computed
from deltalog.arrow_types import ArrowData
from deltalog.checked import is_text
from deltalog.credentials import EXPECTED, CredentialProvider, is_provider
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument

__all__ = [
    "ChangeRange",
    "Names",
    "StagedCommit",
    "StoreOptions",
    "TableOptions",
    "columns_argument",
    "iso_time",
    "limit_argument",
    "location_argument",
    "milliseconds",
    "names_argument",
    "options_argument",
    "required_version",
    "roots_argument",
    "size_argument",
    "span_argument",
    "staged_argument",
    "store_argument",
    "stream_argument",
    "table_options",
    "text_argument",
    "timestamp_argument",
    "version_argument",
    "whole_argument",
]

Names: TypeAlias = list[str] | tuple[str, ...]
"""Several names. `Sequence[str]` is not used, because it would also accept a single string."""

StagedCommit: TypeAlias = "str | os.PathLike[str] | tuple[int, bytes]"
"""A commit that a catalog has not published yet: its path, or its version and its bytes."""


class ChangeRange(NamedTuple):
    """The range of versions for a change data feed, from a version or time to another, both included.

    Times are in milliseconds since the epoch.
    """

    start_version: int | None = None
    end_version: int | None = None
    start_timestamp_ms: int | None = None
    end_timestamp_ms: int | None = None


class StoreOptions(NamedTuple):
    """The arguments that open a store."""

    options: dict[str, str]
    credential_provider: CredentialProvider | None = None


class TableOptions(NamedTuple):
    """The definition of a new table except for its columns. If the table already exists, its definition is compared
    with this one.
    """

    partition_by: Sequence[str] | None = None
    configuration: dict[str, str] | None = None
    name: str | None = None
    description: str | None = None


# The range of signed 64-bit integers, which all Delta implementations use for versions.
_LEAST, _LARGEST = -(2**63), 2**63 - 1


def location_argument(table_uri: object, name: str = "table_uri") -> str:
    """Returns a path or a URL as a string; `~` at its beginning is replaced with the user's home directory."""
    location = _path(table_uri)
    if not is_text(location):
        raise wrong_argument(name, table_uri, "a path or a URL")
    return os.path.expanduser(location) if location.startswith("~") else location  # noqa: PTH111 (also of URLs)


def _path(value: object) -> object:
    """Returns the path of a path object as a string; None if the object is not a path."""
    try:
        return os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    except TypeError:
        return None


def roots_argument(allowed_roots: "Iterable[str | os.PathLike[str]] | None") -> list[str]:
    """Returns paths and URLs as strings."""
    expected = "a list of paths or URLs, such as ['/data/source']"
    if allowed_roots is None:
        return []
    return [
        location_argument(root, "allowed_roots") for root in _items("allowed_roots", allowed_roots, expected)
    ]


def _items(name: str, values: object, expected: str) -> list[object]:
    """Returns the items of a list. Refuses a single string, whose items would be its characters."""
    if isinstance(values, (str, bytes, os.PathLike, Mapping)) or not isinstance(values, Iterable):
        raise wrong_argument(name, values, expected)
    return list(values)


def text_argument(name: str, text: object, expected: str = "text") -> str:
    """Checks and returns a string."""
    if not is_text(text):
        raise wrong_argument(name, text, expected)
    return text


def version_argument(version: int | None, name: str = "version") -> int | None:
    """Checks and returns a version of a table; it may be None."""
    return None if version is None else required_version(version, name)


def required_version(version: int | None, name: str = "version") -> int:
    """Checks and returns a version of a table; it must not be None."""
    return whole_argument(version, name, "a whole number from 0", 0)


def span_argument(span: float | timedelta | None, name: str) -> timedelta | None:
    """Returns a duration, which may be given as a number of seconds."""
    if span is None or (isinstance(span, timedelta) and span >= timedelta(0)):
        return span
    if isinstance(span, (int, float)) and not isinstance(span, bool) and 0 <= span <= 1e9:
        return timedelta(seconds=span)
    raise wrong_argument(name, span, "a timedelta or a number of seconds from 0 to 1e9")


def limit_argument(limit: int | None, name: str = "limit") -> int | None:
    """Checks and returns the maximum number of entries."""
    return None if limit is None else whole_argument(limit, name, "a whole number from 0", 0)


def count_argument(count: int | None, name: str) -> int | None:
    """Checks and returns a number that is at least 1."""
    return None if count is None else whole_argument(count, name, "a whole number from 1", 1)


def size_argument(size: int | None, name: str) -> int | None:
    """Checks and returns a size in bytes."""
    return None if size is None else whole_argument(size, name, "a whole number of bytes from 1", 1)


def whole_argument(value: object, name: str, expected: str, least: int = _LEAST) -> int:
    """Returns a 64-bit integer; the argument may also be a NumPy integer."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not least <= number <= _LARGEST:
        raise wrong_argument(name, value, expected)
    return number


def columns_argument(columns: Sequence[str] | None, name: str = "columns") -> list[str] | None:
    """Checks and returns a list of column names, or None."""
    return None if columns is None else names_argument(columns, name)


def names_argument(names: Sequence[str], name: str, *, one: bool = False) -> list[str]:
    """Returns a list of names. With `one`, a single name may be given instead of a list."""
    if one and is_text(names):
        return [names]
    expected = "a name, or a list of names" if one else "a list of names"
    if isinstance(names, str):
        expected += f": [{names!r}]"
    found = _items(name, names, expected)
    texts = [text for text in found if is_text(text)]
    if len(texts) < len(found):
        raise wrong_argument(name, names, expected)
    return texts


def options_argument(options: Mapping[str, str] | None, name: str) -> dict[str, str]:
    """Checks a mapping of strings, and returns it as a dictionary; returns an empty dictionary for None."""
    expected = "a dictionary of strings to strings"
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise wrong_argument(name, options, expected)
    pairs = dict(options)
    for key, value in pairs.items():
        if not (is_text(key) and is_text(value)):
            raise wrong_argument(f"{name}[{key!r}]", value, expected)
    return pairs


def store_argument(
    location: str, storage_options: Mapping[str, str] | None, credential_provider: CredentialProvider | None
) -> StoreOptions:
    """Returns storage options and a credential provider. If the provider is a boto3 session, its region is added to the
    options.
    """
    options = _storage_options(storage_options)
    if credential_provider is None:
        return StoreOptions(options)
    if not is_provider(credential_provider):
        raise hinted(
            InvalidArgumentError(
                f"credential_provider cannot be an object of type {type(credential_provider).__name__}"
            ),
            f"pass a function, or an object of boto3, azure-identity or google-auth: {EXPECTED}",
        )
    region = getattr(credential_provider, "region_name", None)
    is_s3 = location.partition("://")[0].lower() in ("s3", "s3a", "s3n")
    if is_s3 and isinstance(region, str) and not _REGIONS & {name.lower() for name in options}:
        options["aws_region"] = region
    return StoreOptions(options, credential_provider)


_REGIONS = {"aws_region", "region", "aws_default_region", "default_region"}


def _storage_options(options: object) -> dict[str, str]:
    """Checks and returns storage options. Error messages do not show their values, which may be secrets."""
    if options is None:
        return {}
    hint = "pass a dictionary of strings to strings, such as {'aws_region': 'eu-west-1'}"
    if not isinstance(options, Mapping):
        raise hinted(
            InvalidArgumentError(f"storage_options cannot be an object of type {type(options).__name__}"),
            hint,
        )
    pairs = dict(options)
    for key, value in pairs.items():
        for text in (key, value):
            if not is_text(text):
                what = f"the option {key!r}" if isinstance(key, str) else "a name"
                raise hinted(
                    InvalidArgumentError(f"{what} of storage_options has the type {type(text).__name__}"),
                    hint,
                )
    return pairs


def table_options(
    partition_by: Sequence[str] | str | None,
    configuration: Mapping[str, str] | None,
    name: str | None,
    description: str | None,
) -> TableOptions:
    """Checks and returns the definition of a new table. A single partition column may be given without a list."""
    columns = None if partition_by is None else names_argument(partition_by, "partition_by", one=True)
    return TableOptions(columns, options_argument(configuration, "configuration"), name, description)


def staged_argument(staged_commits: Iterable[StagedCommit] | None) -> "list[str | tuple[int, bytes]] | None":
    """Checks and returns the staged commits of a table that a catalog manages."""
    if staged_commits is None:
        return None
    expected = "a list, whose items are the names of files, or versions with bytes"
    return [_staged(commit) for commit in _items("staged_commits", staged_commits, expected)]


def _staged(commit: object) -> "str | tuple[int, bytes]":
    if isinstance(commit, tuple) and len(commit) == 2 and isinstance(commit[1], bytes):
        return required_version(commit[0], "the version of a staged commit"), commit[1]
    path = _path(commit)
    if not is_text(path):
        raise wrong_argument(
            "an item of staged_commits", commit, "the name of a file, or a version and bytes"
        )
    return path


def stream_argument(data: object, name: str = "data") -> ArrowData:
    """Checks and returns Arrow data: a stream, an array, or several of them, such as the batches of a Polars lazy
    frame.
    """
    data = computed(data)
    if isinstance(data, (list, tuple)):
        for item in data:
            _ensure_arrow(item, f"an item of {name}")
    elif not isinstance(data, Iterator):
        _ensure_arrow(data, name)
    return cast(ArrowData, data)


def _ensure_arrow(data: object, name: str) -> None:
    if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        refused = f"{name} cannot be an object of type {type(data).__name__}: it has no __arrow_c_stream__"
        raise hinted(
            InvalidArgumentError(refused),
            "pass a pyarrow table, a polars or pandas 3 frame, or similar data, or a list or generator of batches",
        )


def timestamp_argument(
    timestamp: datetime | str | None, name: str = "timestamp", *, round_up: bool = False
) -> int | None:
    """Returns a time as milliseconds since the epoch, see `milliseconds`; without a zone it is in UTC."""
    if timestamp is None:
        return None
    expected = "a datetime, or text in ISO 8601 such as 2024-05-01T12:30:00Z"
    given: object = timestamp
    if isinstance(given, str):
        try:
            given = iso_time(given)
        except ValueError as error:
            raise wrong_argument(name, timestamp, expected) from error
    if not isinstance(given, datetime):
        raise wrong_argument(name, timestamp, expected)
    if given.tzinfo is None:
        given = given.replace(tzinfo=timezone.utc)
    since_epoch: object = given - datetime(1970, 1, 1, tzinfo=timezone.utc)
    # pandas' NaT is an instance of datetime, but represents a missing time.
    if not isinstance(since_epoch, timedelta):
        raise wrong_argument(name, timestamp, expected)
    return milliseconds(since_epoch // timedelta(microseconds=1), round_up=round_up)


def iso_time(text: str) -> datetime:
    """Parses a time in ISO 8601; raises `ValueError` if the string is not valid."""
    # Python 3.10 does not parse the suffix Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def milliseconds(micros: int, *, round_up: bool = False) -> int:
    """Converts microseconds to milliseconds, rounded down, or up.

    Commit times are whole milliseconds. The start of a range of changes is rounded up, so that commits before it are
    excluded; all other times are rounded down.
    """
    return -(-micros // 1000) if round_up else micros // 1000
