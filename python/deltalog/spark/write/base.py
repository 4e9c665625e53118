"""The base of a write: the version of the written table from which its data was read, and the rows that were read.

A DataFrame always reads the same version of a table. If an overwrite with its rows replaced a newer version, the
commits in between would be lost. If an append, or an overwrite of some rows, ignored these commits, it could add rows
that do not fit any order of the commits. So a commit after that version is a conflict if it changes the rows that were
read, or, depending on the table's isolation level, adds such rows. Rows that the plan does not read are ignored.

- The option `baseVersion` names the base of an overwrite: a version, or `newest` for the newest version when the write
  begins.
- Without the option, the base is found in the analyzed plan of a classic session, as long as the plan contains the
  table. This includes cached data, because Spark uses a cache only for a plan of the same version.
- The base is unknown for rows that were taken out of the plan by `localCheckpoint`, `checkpoint`, `collect` or
  `toPandas` and `createDataFrame`. Then the base is the newest version when the write begins.
- A version that the query requests explicitly (`versionAsOf`, `TIMESTAMP AS OF`) is not the base, because its rows
  are meant to be old: an overwrite with them restores a table.
- A Python data source does not see the plan, so there an overwrite of an existing table requires the option, and an
  append is always blind.
"""

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from deltalog._internal import Snapshot, SparkWrite, TableReplacedError
from deltalog.spark.errors import (
    CommitConflictError,
    InvalidArgumentError,
    NotATableError,
    VersionNotFoundError,
)
from deltalog.spark.location import unescaped
from deltalog.spark.options import BASE_VERSION, Options
from deltalog.spark.read.planner import key_of
from deltalog.spark.read.table_version import TableVersion
from deltalog.spark.sources import Source
from deltalog.spark.write.request import WriteRequest


def requested_base(
    options: Options, uri: str, allowed_roots: list[str], storage_options: Mapping[str, str] | None = None
) -> Snapshot | None:
    """Returns the version of the table `uri` that the option requests; None for the newest."""
    version = options.base_version
    if not isinstance(version, int):
        return None
    return Snapshot.open(uri, version=version, storage_options=storage_options, allowed_roots=allowed_roots)


def check_base_requested(pending: SparkWrite, uri: str, options: Options) -> None:
    """Raises an error if an overwrite of an existing table lacks the option `baseVersion`, and the plan of its data is
    unknown.
    """
    if pending.table_schema_json is not None and options.base_version is None:
        raise InvalidArgumentError(
            f"it is unknown which version of the table {uri} the data was read from, because Spark does not pass the "
            f"plan to Python data sources: set the option {BASE_VERSION} to that version, so that the overwrite fails "
            "if other commits followed it, or to newest to replace the newest version"
        )


class OwnRows(NamedTuple):
    """The rows that a write reads from the table that it writes to."""

    base: Snapshot
    """The version on which the write is based: the oldest that was read."""
    filters: list[str]
    """The conditions of the rows that were read; an empty condition is true for all rows."""


def read_before(request: WriteRequest, mode: str) -> OwnRows | None:
    """Returns the base of a write of a classic session. None means that it is based on the newest version, and depends
    on no rows.

    The base is the requested version, or else the version that the plan of the rows reads from the table. `mode` is the
    name of Spark's `SaveMode` in lower case.
    """
    if mode not in ("append", "overwrite"):
        return None
    options = request.options
    sources = request.sources if options.sources is None else options.sources
    if options.base_version is None:
        return own_rows(sources, request.uri, request.roots)
    base = requested_base(options, request.uri, request.roots, request.location.storage_options)
    return None if base is None else OwnRows(base, own_filters(sources, request.uri))


def own_filters(sources: Iterable[Source], uri: str) -> list[str]:
    """Returns the conditions of the rows that sources read from the table `uri`; an empty condition for all rows."""
    return [filters for _, filters in _own(sources, uri)]


def is_read(sources: Iterable[Source], uri: str) -> bool:
    """Returns whether sources read the table `uri`, at any version, or as a stream."""
    return any(_place(key_of(source.planner).table.uri) == _place(uri) for source in sources)


def own_rows(sources: Iterable[Source], uri: str, allowed_roots: list[str]) -> OwnRows | None:
    """Returns the rows that the sources read from the table `uri`; None if they do not read it."""
    own = _own(sources, uri)
    if not own:
        return None
    oldest = min((table for table, _ in own), key=lambda table: table.version)
    replaced = "but the table has since been dropped, or dropped and created again", "table_replaced"
    if any(table.table_id != oldest.table_id for table, _ in own):
        raise _conflict(uri, oldest.version, *replaced)
    try:
        base = oldest._replace(uri=uri, allowed_roots=tuple(allowed_roots)).open()
    except VersionNotFoundError as error:
        raise _conflict(uri, oldest.version, "which no longer exists", "log_cleaned_up") from error
    except (NotATableError, TableReplacedError) as error:
        raise _conflict(uri, oldest.version, *replaced) from error
    return OwnRows(base, [filters for _, filters in own])


def _own(sources: Iterable[Source], uri: str) -> list[tuple[TableVersion, str]]:
    """Returns the versions of the table `uri` among the sources, with the conditions of the rows."""
    read = [(key_of(source.planner), source.filters) for source in sources]
    return [
        (key.table, filters)
        for key, filters in read
        if key.is_version and _place(key.table.uri) == _place(uri)
    ]


def _conflict(uri: str, version: int, what: str, reason: str) -> CommitConflictError:
    hint = "nothing was committed; read the table again and repeat the write"
    error = CommitConflictError(
        f"the data was read from version {version} of the table {uri}, {what}; {hint}"
    )
    error.table, error.reason, error.hint = uri, reason, hint
    return error


def _place(uri: str) -> str:
    """Returns a location in a form that can be compared, with links of the local file system resolved."""
    place = unescaped(uri).rstrip("/")
    return os.path.realpath(place.removeprefix("file:")) if place.startswith("file:/") else place
