"""Conversion of errors of Spark's tasks about files of a table to errors with table, version, file and a hint.

Spark's error for a missing data file contains a path but no table. The Java classes of this package report faults
of deletion vectors as `FileFault`. This module holds weak references to the planned snapshots. A file below a root
of one of them belongs to its table. Errors about other paths are left unchanged.
"""

import threading
import weakref
from itertools import chain
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

from deltalog import errors
from deltalog._internal import DeltaError, MissingFileError, Snapshot
from deltalog.spark.jvm.compile import PACKAGE

# The error condition in every release of Spark 4. The file is its only parameter.
_CONDITION = "FAILED_READ_FILE.FILE_NOT_EXIST"
_FAULT = f"{PACKAGE}.FileFault"
_DEEPEST_CAUSE = 20
# The same text as in Rust (`MISSING_FILE_HINT`) and in `VectorPlace.java`.
_HINT = (
    "the log refers to this file, but it was vacuumed (if this is an old version) or deleted by hand: "
    "read a newer version, or restore the file"
)


_Error = TypeVar("_Error", bound=DeltaError)


class PlansFiles(Protocol):
    """An object that lives as long as a relation in the JVM."""

    @property
    def snapshot(self) -> Snapshot: ...


_lock = threading.Lock()
# Ordered by their last plan.
_planned: "weakref.WeakKeyDictionary[PlansFiles, None]" = weakref.WeakKeyDictionary()


def remember(planner: PlansFiles) -> None:
    """Records that Spark may read files of `planner.snapshot`."""
    with _lock:
        _planned.pop(planner, None)
        _planned[planner] = None


def error_of(java_exception: Any) -> DeltaError | None:
    """Returns the error for a Java exception about a file of a planned snapshot; None for other exceptions."""
    from py4j.java_gateway import is_instance_of
    from pyspark import SparkContext

    for _ in range(_DEEPEST_CAUSE):
        if java_exception is None:
            return None
        if java_exception.getClass().getName() == _FAULT:
            return _fault(java_exception)
        # The enclosing exceptions repeat its text, but lack its parameter.
        named = f"[{_CONDITION}]" in (java_exception.getMessage() or "")
        if named and is_instance_of(SparkContext._gateway, java_exception, "org.apache.spark.SparkThrowable"):
            path = java_exception.getMessageParameters().get("path")
            if path is not None:
                return _missing(str(path))
        java_exception = java_exception.getCause()
    return None


def _missing(path: str) -> MissingFileError | None:
    snapshot = _snapshot_of(_comparable(path))
    return (
        None
        if snapshot is None
        else _located(MissingFileError, "the file is not there", _HINT, snapshot, path)
    )


def _fault(fault: Any) -> DeltaError:
    """Returns the error for a `FileFault`. Its message is complete even if the table is unknown."""
    kind: type[DeltaError] = getattr(errors, fault.kind())
    hint, path = fault.hint(), fault.dataFile()
    snapshot = _snapshot_of(_comparable(path))
    if snapshot is None:
        return kind(f"{fault.getMessage()} (file {path})")
    return _located(kind, fault.getMessage(), hint, snapshot, path)


def _located(kind: type[_Error], message: str, hint: str | None, snapshot: Snapshot, path: str) -> _Error:
    file = _comparable(path).removeprefix(_comparable(snapshot.uri) + "/")
    error = kind(
        f"{message} (table {snapshot.uri}, version {snapshot.version}, file {file})"
        + (f"; {hint}" if hint else "")
    )
    error.table, error.version, error.path, error.hint = snapshot.uri, snapshot.version, file, hint
    return error


def _snapshot_of(path: str) -> Snapshot | None:
    """Returns the planned snapshot to which `path` belongs, or None.

    If several versions were planned, this is the latest one that lists the file.
    """
    with _lock:
        planners = list(_planned)
    below = [
        planner
        for planner in reversed(planners)
        if any(path.startswith(root + "/") for root in _roots(planner.snapshot))
    ]
    inside = [planner for planner in below if path.startswith(_comparable(planner.snapshot.uri) + "/")]
    listing = (p for p in below if below == inside == [p] or path in map(_comparable, p.snapshot.file_uris()))
    planner = next(chain(listing, inside), None)
    if planner is None:
        return None
    return planner.snapshot


def _roots(snapshot: Snapshot) -> list[str]:
    return [_comparable(root) for root in (snapshot.uri, *snapshot.allowed_roots)]


def _comparable(location: str) -> str:
    """Returns a location without escapes and without an empty authority.

    Hadoop and URLs spell both in different ways.
    """
    scheme, separator, rest = location.partition(":/")
    return (
        f"{scheme}:/{unquote(rest.lstrip('/') if rest.startswith('//') else rest)}"
        if separator
        else unquote(location)
    )
