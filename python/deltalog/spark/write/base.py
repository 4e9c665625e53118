"""The base of an overwrite: the version from which its data was read.

A DataFrame stays on the version that it was read from. If an overwrite with its rows replaced a newer version, the
commits between the two would be lost.

- The version is known as long as the analyzed plan contains the table. This includes cached data, because Spark
  uses a cache only for a plan of the same version.
- It is not known for rows that were taken out of the plan by `localCheckpoint`, `checkpoint`, `collect` or
  `toPandas` and `createDataFrame`. Then the base is the newest version when the write begins.
- A version that the query requests explicitly (`versionAsOf`, `TIMESTAMP AS OF`) is not the base, because an
  overwrite with the rows of an old version restores a table.
"""

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from deltalog._internal import Snapshot
from deltalog.spark.errors import CommitConflictError, NotATableError, VersionNotFoundError
from deltalog.spark.jvm import Jvm


def base_of(jvm: Jvm, data: Any, uri: str, allowed_roots: list[str]) -> Snapshot | None:
    """Returns the oldest version of the table `uri` in the plan of `data`; None if the plan has none."""
    identities = jvm.static("SourceVersions", "of", data.queryExecution().analyzed())
    versions = [found for found in map(_version_of, identities) if found is not None]
    read = [(version, table_id) for location, version, table_id in versions if location == _comparable(uri)]
    if not read:
        return None
    oldest = min(version for version, _ in read)
    try:
        base = Snapshot.open(uri, version=oldest, allowed_roots=allowed_roots)
    except (NotATableError, VersionNotFoundError) as error:
        raise _conflict(uri, oldest, "which no longer exists") from error
    if any(table_id != base.table_id for _, table_id in read):
        raise _conflict(uri, oldest, "but the table has since been dropped and created again")
    return base


def _conflict(uri: str, version: int, what: str) -> CommitConflictError:
    error = CommitConflictError(
        f"the data was read from version {version} of the table {uri}, {what}: nothing was committed; "
        "read the table again and repeat the overwrite"
    )
    error.table, error.version = uri, version
    return error


def _version_of(identity: str) -> tuple[str, int, str] | None:
    """Parses location@version#id; returns None for a change data feed."""
    location, _, table_id = identity.rpartition("#")
    uri, _, version = location.rpartition("@")
    return (_comparable(uri), int(version), table_id) if version.isdigit() else None


def _comparable(uri: str) -> str:
    """Returns a location in a form that can be compared, with links of the local file system resolved."""
    parts = urlsplit(uri)
    return os.path.realpath(unquote(parts.path)) if parts.scheme == "file" else uri.rstrip("/")
