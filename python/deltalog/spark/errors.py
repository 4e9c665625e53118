"""Errors of the Spark layer, and the way that exceptions take from a Python callback through the JVM back to the caller.

The callback does not raise across the wire. It keeps the exception here, under a token; the JVM throws a
`DeltalogException` that carries the token, possibly wrapped in Spark's own exceptions; and where PySpark
turns Java exceptions into Python ones, the original is found again.
"""

import itertools
import threading
from collections import OrderedDict
from typing import Any

from deltalog._internal import (
    CommitConflictError,
    DeltaError,
    InvalidArgumentError,
    NotATableError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltalog.spark.exceptions import as_sparks
from deltalog.spark.read import file_errors
from deltalog.spark.write.outcome import AfterCommitError

__all__ = [
    "AfterCommitError",
    "CommitConflictError",
    "DeltaError",
    "InvalidArgumentError",
    "NotATableError",
    "SchemaMismatchError",
    "UnsupportedFeatureError",
    "VersionNotFoundError",
]

JAVA_EXCEPTION = "io.deltalog.spark.DeltalogException"
# Exceptions hold on to their frames. An exception that nobody fetched (a failed query in a thread that was
# given up) must not stay forever.
_KEPT = 64
_DEEPEST_CAUSE = 20
# What TableDefinition.java names the catalog of a table that is about to be written to.
WRITE_CATALOG = "`SPARK_CATALOG`."

_lock = threading.Lock()
_tokens = itertools.count(1)
_pending: OrderedDict[str, BaseException] = OrderedDict()


def keep(error: BaseException) -> str:
    """Keeps `error` until the JVM's exception with the returned token arrives."""
    with _lock:
        token = str(next(_tokens))
        _pending[token] = error
        while len(_pending) > _KEPT:
            _pending.popitem(last=False)
    return token


def original(java_exception: Any) -> BaseException | None:
    """The Python exception behind a Java one, or None if it is not one of ours."""
    for _ in range(_DEEPEST_CAUSE):
        if java_exception is None:
            return None
        if java_exception.getClass().getName() == JAVA_EXCEPTION:
            with _lock:
                return _pending.get(java_exception.token())
        java_exception = java_exception.getCause()
    return None


def _in_our_words(error: Any) -> Any:
    """Spark refuses a PARTITION clause by itself, because the target of our INSERT shows no partitions to it;
    its words would mislead.
    """
    condition = getattr(error, "getCondition", lambda: None)()
    if condition != "PARTITIONS_NOT_FOUND" or WRITE_CATALOG not in str(error):
        return error
    refusal = UnsupportedFeatureError(
        "INSERT with a PARTITION clause is not supported yet by deltalog: give the partition columns as columns of the rows, "
        "as in INSERT INTO t (a, p) SELECT …"
    )
    refusal.__cause__ = error
    return as_sparks(refusal)


def install_conversion() -> None:
    """Makes PySpark raise the original exception.

    Harmless when done twice; every other exception is converted as before.
    """
    from pyspark.errors.exceptions import captured

    convert = captured.convert_exception
    if getattr(convert, "_deltalog", False):
        return

    def convert_exception(e: Any) -> Any:
        found = original(e) or file_errors.error_of(e)
        return _in_our_words(convert(e)) if found is None else as_sparks(found).with_traceback(None)

    convert_exception._deltalog = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception
