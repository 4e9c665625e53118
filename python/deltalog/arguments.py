"""What users pass, checked and brought to the form that the binary takes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, TypeAlias

from deltalog.credentials import EXPECTED, CredentialProvider, is_provider
from deltalog.errors import InvalidArgumentError

__all__ = [
    "ChangeRange",
    "StagedCommit",
    "StoreOptions",
    "TableOptions",
    "columns_argument",
    "iso_time",
    "limit_argument",
    "location_argument",
    "milliseconds",
    "options_argument",
    "roots_argument",
    "size_argument",
    "staged_argument",
    "store_argument",
    "stream_argument",
    "table_options",
    "timestamp_argument",
    "version_argument",
]

StagedCommit: TypeAlias = "str | os.PathLike[str] | tuple[int, bytes]"
"""A commit that a catalog has not published yet: where it lies, or its version and its bytes."""


class ChangeRange(NamedTuple):
    """The range of changes from a version or a time to another, both included.

    Times are in milliseconds since the epoch.
    """

    start_version: int | None = None
    end_version: int | None = None
    start_timestamp_ms: int | None = None
    end_timestamp_ms: int | None = None


class StoreOptions(NamedTuple):
    """What opens a store."""

    options: dict[str, str]
    credential_provider: CredentialProvider | None = None


class TableOptions(NamedTuple):
    """What a new table is to be beside its columns; of an existing one it is checked."""

    partition_by: Sequence[str] | None = None
    configuration: dict[str, str] | None = None
    name: str | None = None
    description: str | None = None


# Versions are signed 64-bit numbers to every implementation.
_LARGEST = 2**63 - 1


def location_argument(table_uri: "str | os.PathLike[str]") -> str:
    """A path or a URL as text."""
    location = os.fspath(table_uri) if isinstance(table_uri, (str, os.PathLike)) else None
    if not isinstance(location, str):
        raise InvalidArgumentError(f"a table's location is a path or a URL, not {table_uri!r}")
    return location


def roots_argument(allowed_roots: "Iterable[str | os.PathLike[str]] | None") -> list[str]:
    """Locations as text. One text would be taken apart into its letters."""
    if isinstance(allowed_roots, (str, bytes, os.PathLike)):
        raise InvalidArgumentError(f"allowed roots are a list: [{allowed_roots!r}], not {allowed_roots!r}")
    return [location_argument(root) for root in allowed_roots or ()]


def version_argument(version: int | None) -> int | None:
    """A version of a table."""
    if version is not None and not _is_count(version):
        raise InvalidArgumentError(f"a version is a whole number from 0, not {version!r}")
    return version


def span_argument(span: float | timedelta | None, what: str) -> timedelta | None:
    """Returns a span of time, which may be a number of seconds."""
    if span is None or (isinstance(span, timedelta) and span >= timedelta(0)):
        return span
    if isinstance(span, (int, float)) and not isinstance(span, bool) and 0 <= span <= 1e9:
        return timedelta(seconds=span)
    raise InvalidArgumentError(f"{what} is a timedelta or a number of seconds from 0 to 1e9, not {span!r}")


def limit_argument(limit: int | None) -> int | None:
    """How many entries somebody wants."""
    if limit is not None and not _is_count(limit):
        raise InvalidArgumentError(f"a limit is a whole number from 0, not {limit!r}")
    return limit


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _LARGEST


def size_argument(size: int | None, what: str = "a target file size") -> int | None:
    """The size of a file, or of something else, in bytes."""
    if size is not None and not (_is_count(size) and 0 < size < 2**63):
        raise InvalidArgumentError(f"{what} is a whole number of bytes from 1, not {size!r}")
    return size


def columns_argument(columns: Sequence[str] | None) -> list[str] | None:
    """Names of columns. One text would be taken apart into its letters."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise InvalidArgumentError(f"columns are a list of names: ['{columns}'], not '{columns}'")
    names = list(columns)
    if not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(f"columns are a list of names, not {columns!r}")
    return names


def options_argument(options: Mapping[str, str] | None, what: str) -> dict[str, str]:
    """Pairs of text; `what` they are is for the message."""
    pairs = dict(options or {})
    for key, value in pairs.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise InvalidArgumentError(f"{what} is text to text, not {key!r}: {value!r}")
    return pairs


def store_argument(
    location: str, storage_options: Mapping[str, str] | None, credential_provider: CredentialProvider | None
) -> StoreOptions:
    """Options of a store, and what hands out its credentials. A session of boto3 also says in which region it works."""
    options = options_argument(storage_options, "a storage option")
    if credential_provider is None:
        return StoreOptions(options)
    if not is_provider(credential_provider):
        raise InvalidArgumentError(
            "a credential provider is a function or an object of boto3, azure-identity or google-auth, not of the "
            f"type {type(credential_provider).__name__}; {EXPECTED}"
        )
    region = getattr(credential_provider, "region_name", None)
    is_s3 = location.partition("://")[0].lower() in ("s3", "s3a", "s3n")
    if is_s3 and isinstance(region, str) and not _REGIONS & {name.lower() for name in options}:
        options["aws_region"] = region
    return StoreOptions(options, credential_provider)


_REGIONS = {"aws_region", "region", "aws_default_region", "default_region"}


def table_options(
    partition_by: Sequence[str] | str | None,
    configuration: Mapping[str, str] | None,
    name: str | None,
    description: str | None,
) -> TableOptions:
    """What users say of a new table; one column to partition by may be given as it is."""
    columns = columns_argument([partition_by] if isinstance(partition_by, str) else partition_by)
    return TableOptions(columns, options_argument(configuration, "a table property"), name, description)


def staged_argument(staged_commits: Iterable[StagedCommit] | None) -> "list[str | tuple[int, bytes]] | None":
    """The staged commits that a catalog names. One text would be taken apart into its letters."""
    if staged_commits is None:
        return None
    if isinstance(staged_commits, (str, bytes, os.PathLike)):
        raise InvalidArgumentError(f"staged commits are a list: [{staged_commits!r}], not {staged_commits!r}")
    return [_staged(commit) for commit in staged_commits]


def _staged(commit: StagedCommit) -> "str | tuple[int, bytes]":
    if (
        isinstance(commit, tuple)
        and len(commit) == 2
        and _is_count(commit[0])
        and isinstance(commit[1], bytes)
    ):
        return commit
    path = os.fspath(commit) if isinstance(commit, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise InvalidArgumentError(
            f"a staged commit is the name of its file, or a version and bytes, not {commit!r}"
        )
    return path


def stream_argument(data: object) -> object:
    """Returns data that are an Arrow stream, as they are."""
    if not hasattr(data, "__arrow_c_stream__"):
        raise InvalidArgumentError(
            f"data of the type {type(data).__name__} cannot be written: it has no __arrow_c_stream__; pass a pyarrow "
            "table, a polars or pandas 3 frame, or similar data"
        )
    return data


def timestamp_argument(timestamp: datetime | str | None, *, round_up: bool = False) -> int | None:
    """Returns a time as milliseconds since the epoch, see `milliseconds`; without a zone it is in UTC."""
    if timestamp is None:
        return None
    if isinstance(timestamp, str):
        try:
            timestamp = iso_time(timestamp)
        except ValueError as error:
            raise InvalidArgumentError(
                f"'{timestamp}' is no time in ISO 8601, such as 2024-05-01T12:30:00Z"
            ) from error
    if not isinstance(timestamp, datetime):
        raise InvalidArgumentError(
            f"a timestamp is a datetime, or text in ISO 8601 such as 2024-05-01T12:30:00Z, not {timestamp!r}"
        )
    if timestamp.tzinfo is None:
        timestamp = timestamp.replace(tzinfo=timezone.utc)
    since_epoch = timestamp - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return milliseconds(since_epoch // timedelta(microseconds=1), round_up=round_up)


def iso_time(text: str) -> datetime:
    """Reads a time in ISO 8601; raises `ValueError` if it is not one."""
    # Python 3.10 does not know Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def milliseconds(micros: int, *, round_up: bool = False) -> int:
    """Converts microseconds to milliseconds, rounded down, or up.

    Commit times are whole milliseconds. The time at which changes begin is rounded up, which leaves out the
    commits before it; every other time is rounded down.
    """
    return -(-micros // 1000) if round_up else micros // 1000
