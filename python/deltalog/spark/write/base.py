"""The base of an overwrite: the version from which its data was read.

A DataFrame stays on the version that it was read from. If an overwrite with its rows replaced a newer version, the
commits between the two would be lost.

- The option `baseVersion` names the base: a version, or `newest` for the newest version when the write begins.
- Without the option, the base is found in the analyzed plan of a classic session, as long as the plan contains the
  table. This includes cached data, because Spark uses a cache only for a plan of the same version.
- It is not known for rows that were taken out of the plan by `localCheckpoint`, `checkpoint`, `collect` or
  `toPandas` and `createDataFrame`. Then the base is the newest version when the write begins.
- A version that the query requests explicitly (`versionAsOf`, `TIMESTAMP AS OF`) is not the base, because an
  overwrite with the rows of an old version restores a table.
- A Python data source does not see the plan, so there an overwrite of an existing table requires the option.
"""

import os
from collections.abc import Iterable, Mapping

from deltalog._internal import Snapshot, SparkWrite, TableReplacedError
from deltalog.spark.errors import (
    CommitConflictError,
    InvalidArgumentError,
    NotATableError,
    VersionNotFoundError,
)
from deltalog.spark.location import unescaped
from deltalog.spark.options import BASE_VERSION, Options
from deltalog.spark.read.planner import parts_of
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
    """Raises an error for an overwrite of an existing table without the option, if the plan is unknown."""
    if pending.table_schema_json is not None and options.base_version is None:
        raise InvalidArgumentError(
            f"it is unknown which version of the table {uri} the data was read from, because Spark does not pass the "
            f"plan to Python data sources: set the option {BASE_VERSION} to that version, so that the overwrite fails "
            "if other commits followed it, or to newest to replace the newest version"
        )


def overwrite_base(request: WriteRequest) -> Snapshot | None:
    """Returns the version that an overwrite of a classic session is based on; None for the newest.

    It is the requested version, else the oldest version of the table that the rows are read from.
    """
    options = request.options
    if options.base_version is not None:
        return requested_base(options, request.uri, request.roots, request.location.storage_options)
    sources = request.sources if options.sources is None else options.sources
    return base_among(sources, request.uri, request.roots)


def base_among(keys: Iterable[str], uri: str, allowed_roots: list[str]) -> Snapshot | None:
    """Returns the oldest version of the table `uri` among those that the planners with these keys read."""
    sources = map(parts_of, keys)
    read = [table for table, changes in sources if changes is None and _place(table.uri) == _place(uri)]
    if not read:
        return None
    oldest = min(read, key=lambda table: table.version)
    replaced = "but the table has since been dropped, or dropped and created again", "table_replaced"
    if any(table.table_id != oldest.table_id for table in read):
        raise _conflict(uri, oldest.version, *replaced)
    try:
        return oldest._replace(uri=uri, allowed_roots=tuple(allowed_roots)).open()
    except VersionNotFoundError as error:
        raise _conflict(uri, oldest.version, "which no longer exists", "log_cleaned_up") from error
    except (NotATableError, TableReplacedError) as error:
        raise _conflict(uri, oldest.version, *replaced) from error


def _conflict(uri: str, version: int, what: str, reason: str) -> CommitConflictError:
    hint = "nothing was committed; read the table again and repeat the overwrite"
    error = CommitConflictError(
        f"the data was read from version {version} of the table {uri}, {what}; {hint}"
    )
    error.table, error.reason, error.hint = uri, reason, hint
    return error


def _place(uri: str) -> str:
    """Returns a location in a form that can be compared, with links of the local file system resolved."""
    place = unescaped(uri).rstrip("/")
    return os.path.realpath(place.removeprefix("file:")) if place.startswith("file:/") else place
