"""Errors of the Spark layer, and the way of an exception from a Python callback through the JVM to the caller.

The callback does not raise across the wire. It keeps the exception here, under a token. The JVM throws a
`DeltalogException` that carries the token, possibly wrapped in Spark's own exceptions. Where PySpark turns Java
exceptions into Python ones, the original is found again.
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
from deltalog.spark.jvm.compile import PACKAGE
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

# Exceptions of queries that nobody waits for any more are never fetched.
_KEPT = 64
_DEEPEST_CAUSE = 20
# What TableDefinition.java names the catalog of a table that is about to be written to.
WRITE_CATALOG = "`SPARK_CATALOG`."

_lock = threading.Lock()
_tokens = itertools.count(1)
_pending: OrderedDict[str, BaseException] = OrderedDict()


def keep(error: BaseException) -> str:
    """Keeps `error` until the JVM's exception with the returned token arrives.

    Tracebacks are dropped: their frames would keep everything alive that the failed call used.
    """
    _drop_tracebacks(error)
    with _lock:
        token = str(next(_tokens))
        _pending[token] = error
        while len(_pending) > _KEPT:
            _pending.popitem(last=False)
    return token


def _drop_tracebacks(error: BaseException) -> None:
    chain: list[BaseException | None] = [error]
    seen: set[int] = set()
    while chain:
        link = chain.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = None
            chain += [link.__cause__, link.__context__]


def _copied(error: BaseException) -> BaseException:
    """Returns what is raised: the one that is kept would get the traceback of whoever it is raised to."""
    # Without `__init__`, which takes other arguments in PySpark's exceptions than `args` has.
    copied: BaseException = type(error).__new__(type(error), *error.args)
    copied.__dict__.update(error.__dict__)
    copied.__cause__, copied.__context__ = error.__cause__, error.__context__
    copied.__suppress_context__ = error.__suppress_context__
    return copied


def original(java_exception: Any) -> BaseException | None:
    """Returns the Python exception behind a Java one, or None if it is not one of ours."""
    for _ in range(_DEEPEST_CAUSE):
        if java_exception is None:
            return None
        if java_exception.getClass().getName() == f"{PACKAGE}.DeltalogException":
            with _lock:
                kept = _pending.get(java_exception.token())
            return None if kept is None else _copied(kept)
        java_exception = java_exception.getCause()
    return None


def _in_our_words(error: Any) -> Any:
    """Replaces an error of Spark's whose words would mislead.

    Spark refuses a PARTITION clause by itself, because the target of our INSERT shows no partitions to it.
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
