"""Converts Python exceptions for the JVM, where they become a `DeltalogException`."""

import logging
from typing import Any

from deltalog.errors import DeltaError
from deltalog.spark.failures.transport import keep, translated
from deltalog.spark.jvm import Jvm
from deltalog.spark.sql_states import sql_state

_log = logging.getLogger("deltalog.spark")


def kept(jvm: Jvm, error: BaseException) -> Any:
    """Returns the Java exception for a JVM that a Python program uses. When it arrives in Python again, the original
    exception is raised.
    """
    message = str(error) or type(error).__name__
    return jvm.new("DeltalogException", message, keep(error), sql_state(error), _met(error))


def told(jvm: Jvm, error: BaseException) -> Any:
    """Returns the Java exception for a JVM without a Python program. An exception of Spark is returned unchanged,
    unless it wraps an error of deltalog.
    """
    of_spark = java_exception(error)
    own = error if of_spark is None else translated(of_spark)
    if own is None:
        return jvm.new("DeltalogException", None, None, None, of_spark)
    text = str(own)
    if not isinstance(own, DeltaError):
        _log.warning("a call of the JVM has failed", exc_info=own)
        first, *_ = text.splitlines() or [""]  # py4j appends stack traces to the message.
        text = f"{type(own).__name__}: {first}"
    return jvm.new("DeltalogException", text, None, sql_state(own), of_spark or _met(own))


def java_exception(error: BaseException) -> Any:
    """Returns the Java exception from which PySpark or py4j created this one; None for a Python exception."""
    of_pyspark = getattr(error, "_origin", None)
    return getattr(error, "java_exception", None) if of_pyspark is None else of_pyspark


def _met(error: BaseException) -> Any:
    """Returns the Java exception that has caused this one, or None."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        found = java_exception(link)
        if found is not None:
            return found
        link = link.__cause__ or link.__context__
    return None
