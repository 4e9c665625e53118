"""Transports exceptions from Python callbacks through the JVM to the caller.

An exception in a callback is not raised through py4j. It is stored in this module under a token, and the JVM throws a
`DeltalogException` with the token, which Spark may wrap in its own exceptions. When PySpark converts the Java
exception, the token identifies the original exception.
"""

import itertools
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from deltalog._internal import DeltaError
from deltalog.spark.dml import cardinality
from deltalog.spark.exceptions import as_pyspark_error
from deltalog.spark.jvm.causes import causes
from deltalog.spark.jvm.jars import PACKAGE
from deltalog.spark.read import file_errors
from deltalog.spark.write import refusals, rule_errors

# The maximum number of stored exceptions. It is limited because exceptions of abandoned queries are never fetched.
_KEPT = 64

# Functions that look for an error of deltalog in a Java exception.
_ERRORS: tuple[Callable[[Any], DeltaError | None], ...] = (
    file_errors.error_of,
    refusals.error_of,
    rule_errors.error_of,
    cardinality.error_of,
)

_lock = threading.Lock()
# Several Python processes may use one JVM. This id distinguishes their tokens.
_process = uuid.uuid4()
_tokens = itertools.count(1)
_pending: OrderedDict[str, BaseException] = OrderedDict()


def keep(error: BaseException) -> str:
    """Stores `error`, and returns the token with which it is found again.

    Tracebacks are dropped, because their frames would keep all objects of the failed call alive.
    """
    _drop_tracebacks(error)
    with _lock:
        token = f"{_process}:{next(_tokens)}"
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
    """Returns a copy of `error` to raise, so that the stored exception does not get a traceback."""
    # `__init__` is not called, because PySpark's exceptions do not accept `args` there.
    copied: BaseException = type(error).__new__(type(error), *error.args)
    copied.__dict__.update(error.__dict__)
    copied.__cause__, copied.__context__ = error.__cause__, error.__context__
    copied.__suppress_context__ = error.__suppress_context__
    return copied


def original(java_exception: Any) -> BaseException | None:
    """Returns the Python exception that caused a Java one; None if there is none."""
    for cause in causes(java_exception):
        if cause.getClass().getName() == f"{PACKAGE}.DeltalogException":
            with _lock:
                kept = _pending.get(cause.token())
            return None if kept is None else _copied(kept)
    return None


def translated(java_exception: Any) -> BaseException | None:
    """Returns the error of deltalog in a Java exception; None if it is an error of Spark."""
    for error_of in (original, *_ERRORS):
        if (found := error_of(java_exception)) is not None:
            return found
    return None


def install_conversion() -> None:
    """Makes PySpark raise the original exceptions of callbacks; other exceptions are converted as before.

    Further calls have no effect.
    """
    from pyspark.errors.exceptions import captured

    convert = captured.convert_exception
    if getattr(convert, "_deltalog", False):
        return

    def convert_exception(e: Any) -> Any:
        found = translated(e)
        return convert(e) if found is None else as_pyspark_error(found).with_traceback(None)

    convert_exception._deltalog = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception
