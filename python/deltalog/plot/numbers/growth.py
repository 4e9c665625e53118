"""How a table grows from version to version: rows, files, bytes, and the commits in its log."""

import json
from bisect import bisect_left
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.arrow_objects import objects
from deltalog.errors import VersionNotFoundError

if TYPE_CHECKING:
    from deltalog._internal import Snapshot
    from deltalog.table import DeltaTable

__all__ = ["Size", "growth_of"]


class Size(NamedTuple):
    """The size of a table at a version."""

    version: int
    rows: int | None
    """The number of rows; None if the log does not have it for all files."""
    files: int
    size_in_bytes: int
    log_bytes: int
    """The total size of the commits up to this version, starting with the first version that was requested."""


class _File(NamedTuple):
    size: int
    rows: int | None


def growth_of(table: "DeltaTable", last: int | None = None) -> list[Size]:
    """Returns the size of each version that is still in the log, up to the version that is open. `last` limits the
    result to this number of the newest versions.
    """
    snapshot = table._snapshot
    newest = snapshot.version
    first = _first_readable(
        snapshot, newest if last is None else max(newest - max(last, 1) + 1, 0), last is None
    )
    files = _files(snapshot.at(first))
    rows = _Rows()
    for file in files.values():
        rows.count(file, 1)
    size_in_bytes = sum(file.size for file in files.values())
    log_bytes = 0
    sizes: list[Size] = []
    version = first

    def is_done() -> None:
        sizes.append(Size(version, rows.total, len(files), size_in_bytes, log_bytes))

    for action in objects(snapshot.commit_actions(first, newest)):
        while version < action["version"]:
            is_done()
            version += 1
        kind = action["action"]
        log_bytes += len(kind) + len(action["json"].encode()) + len('{"":}\n')
        if version == first or kind not in ("add", "remove"):
            continue
        key = (action["path"], action["deletion_vector"])
        before = files.pop(key, None)
        after = None
        if kind == "add":
            after = files[key] = _added(action)
        for changed, sign in ((before, -1), (after, 1)):
            if changed is not None:
                rows.count(changed, sign)
                size_in_bytes += sign * changed.size
    while version < newest:
        is_done()
        version += 1
    is_done()
    return sizes


class _Rows:
    """Sums up the rows of files. Some files may have no row count in the log."""

    def __init__(self) -> None:
        self._known = 0
        self._unknown = 0

    def count(self, file: _File, sign: int) -> None:
        if file.rows is None:
            self._unknown += sign
        else:
            self._known += sign * file.rows

    @property
    def total(self) -> int | None:
        return None if self._unknown else self._known


def _first_readable(snapshot: "Snapshot", wanted: int, is_any: bool) -> int:
    """Returns the first readable version from `wanted` on; with `is_any`, the first readable version of the table."""
    start = json.loads(snapshot.history_json()[-1])["version"] if is_any else wanted

    def is_readable(version: int) -> bool:
        try:
            snapshot.at(version)
        except VersionNotFoundError:
            return False
        return True

    # Versions before the oldest remaining checkpoint cannot be read; all later versions can.
    return start + bisect_left(range(start, snapshot.version), True, key=is_readable)


def _files(snapshot: "Snapshot") -> dict[tuple[str, str | None], _File]:
    columns = ["path", "size", "num_records", "deletion_vector"]
    found = {}
    for file in objects(snapshot.files(columns)):
        vector = file["deletion_vector"]
        deleted = 0 if vector is None else vector["cardinality"]
        rows = None if file["num_records"] is None else file["num_records"] - deleted
        found[file["path"], _id_of(vector)] = _File(file["size"], rows)
    return found


def _id_of(vector: Mapping[str, Any] | None) -> str | None:
    """Returns the unique id of a deletion vector (protocol: "Deletion Vector Descriptor Schema")."""
    if vector is None:
        return None
    offset = "" if vector["offset"] is None else f"@{vector['offset']}"
    return f"{vector['storage_type']}{vector['path_or_inline_dv']}{offset}"


def _added(action: Mapping[str, Any]) -> _File:
    add = json.loads(action["json"])
    stats = json.loads(add.get("stats") or "{}")
    rows = stats.get("numRecords")
    vector = add.get("deletionVector")
    if rows is not None and vector:
        rows -= vector["cardinality"]
    return _File(action["size"], rows)
