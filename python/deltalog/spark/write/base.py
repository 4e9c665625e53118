"""Finds the version that an overwrite is based on: the one that its data was read at.

A DataFrame stays on the version it was read at. If an overwrite with its rows replaced a newer version, the
commits between the two would be lost.

- The version is known as long as the analyzed plan shows the table. Cached data counts: Spark uses a cache
  only for a plan of the same version.
- It is not known of rows that have left the plan: `localCheckpoint`, `checkpoint`, `collect` or `toPandas`
  and `createDataFrame`. Then the base is the newest version when the write begins.
- A query that asks for a version (`versionAsOf`, `TIMESTAMP AS OF`) says nothing about the base: an overwrite
  with the rows of an old version is how a table is restored.
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
    read = [(version, table_id) for place, version, table_id in versions if place == _place(uri)]
    if not read:
        return None
    oldest = min(version for version, _ in read)
    try:
        base = Snapshot.open(uri, version=oldest, allowed_roots=allowed_roots)
    except (NotATableError, VersionNotFoundError) as error:
        raise _conflict(uri, oldest, "which the log no longer has") from error
    if any(table_id != base.table_id for _, table_id in read):
        raise _conflict(uri, oldest, "and the table was dropped and created again since")
    return base


def _conflict(uri: str, version: int, what: str) -> CommitConflictError:
    error = CommitConflictError(
        f"the data was read at version {version} of the table {uri}, {what}: nothing was committed; "
        "read the table again and repeat the overwrite"
    )
    error.table, error.version = uri, version
    return error


def _version_of(identity: str) -> tuple[str, int, str] | None:
    """Parses location@version#id; None for a change data feed."""
    location, _, table_id = identity.rpartition("#")
    uri, _, version = location.rpartition("@")
    return (_place(uri), int(version), table_id) if version.isdigit() else None


def _place(uri: str) -> str:
    """Returns a location in a form to compare: links of the local file system are followed."""
    parts = urlsplit(uri)
    return os.path.realpath(unquote(parts.path)) if parts.scheme == "file" else uri.rstrip("/")
