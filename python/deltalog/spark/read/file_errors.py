"""Converts errors of Spark's tasks about data files to errors that name the table, the version and the file, with a
hint.

Spark's error for a missing data file contains a path but no table. The Java classes of this package report faults
of deletion vectors as `FileFault`. To find the table of a file, this module remembers the versions that were planned
last. A file belongs to the table of such a version if it is below one of the version's roots. Errors about missing
files elsewhere are left unchanged.
"""

import threading
from collections import OrderedDict
from itertools import chain
from typing import Any, TypeVar

from deltalog import errors
from deltalog._internal import DeltaError, MissingFileError
from deltalog.spark.jvm.causes import causes
from deltalog.spark.jvm.jars import PACKAGE
from deltalog.spark.location import unescaped
from deltalog.spark.read.table_version import TableVersion

# The error condition in every release of Spark 4. The file is its only parameter.
_CONDITION = "FAILED_READ_FILE.FILE_NOT_EXIST"
_FAULT = f"{PACKAGE}.FileFault"
# The same text as in Rust (`MISSING_FILE_HINT`) and in `FileFault.java`.
_HINT = (
    "the log refers to this file, but it was vacuumed (if this is an old version) or deleted by hand: "
    "read a newer version, or restore the file"
)
_HINT_OF_STREAMS = (
    "it was vacuumed or deleted before the stream read it: restore the file, or begin with a new checkpoint; keep "
    "files longer than streams pause (delta.deletedFileRetentionDuration, and the retention of VACUUM)"
)

_Error = TypeVar("_Error", bound=DeltaError)

_KEPT = 256

_lock = threading.Lock()
# The planned versions in the order in which they were last planned, each with a hint for missing files.
_planned: "OrderedDict[TableVersion, str]" = OrderedDict()


def remember(table: TableVersion, *, is_stream: bool = False) -> None:
    """Records that Spark may read files of this version, or of a stream with the schema of this version."""
    with _lock:
        _planned[table] = _HINT_OF_STREAMS if is_stream else _HINT
        _planned.move_to_end(table)
        while len(_planned) > _KEPT:
            _planned.popitem(last=False)


def error_of(java_exception: Any) -> DeltaError | None:
    """Returns the error for a Java exception about a data file. Returns None for other exceptions, and for a missing
    file of an unknown table.
    """
    from py4j.java_gateway import is_instance_of
    from pyspark import SparkContext

    for cause in causes(java_exception):
        if cause.getClass().getName() == _FAULT:
            return _fault(cause)
        # Exceptions that wrap this one repeat its message, but do not have its parameter.
        named = f"[{_CONDITION}]" in (cause.getMessage() or "")
        if named and is_instance_of(SparkContext._gateway, cause, "org.apache.spark.SparkThrowable"):
            path = cause.getMessageParameters().get("path")
            if path is not None:
                return _missing(str(path))
    return None


def _missing(path: str) -> MissingFileError | None:
    table = _version_with(unescaped(path))
    if table is None:
        return None
    with _lock:
        hint = _planned.get(table, _HINT)
    return _located(MissingFileError, "the file is not there", hint, table, path)


def _fault(fault: Any) -> DeltaError:
    """Returns the error for a `FileFault`. If the table is unknown, the error only names the file."""
    kind: type[DeltaError] = getattr(errors, fault.kind())
    hint, path = fault.hint(), fault.dataFile()
    table = _version_with(unescaped(path))
    if table is None:
        return kind(f"{fault.getMessage()} (file {path})")
    return _located(kind, fault.getMessage(), hint, table, path)


def _located(kind: type[_Error], message: str, hint: str | None, table: TableVersion, path: str) -> _Error:
    file = unescaped(path).removeprefix(unescaped(table.uri) + "/")
    error = kind(
        f"{message} (table {table.uri}, version {table.version}, file {file})" + (f"; {hint}" if hint else "")
    )
    error.table, error.version, error.path, error.hint = table.uri, table.version, file, hint
    return error


def _version_with(path: str) -> TableVersion | None:
    """Returns the planned version to which `path` belongs, or None.

    If several versions were planned, this is the latest one that lists the file. If none lists it, this is the latest
    one with the file in the table's own directory.
    """
    with _lock:
        planned = list(reversed(_planned))
    below = [table for table in planned if any(_is_below(path, root) for root in _roots(table))]
    inside = [table for table in below if _is_below(path, table.uri)]
    listing = (table for table in below if below == inside == [table] or _lists(table, path))
    return next(chain(listing, inside), None)


def _roots(table: TableVersion) -> tuple[str, ...]:
    return (table.uri, *table.allowed_roots)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(unescaped(root) + "/")


def _lists(table: TableVersion, path: str) -> bool:
    """Opens the version again and returns whether it lists the file."""
    try:
        return path in map(unescaped, table.open().file_uris())
    except DeltaError:  # The version no longer exists.
        return False
