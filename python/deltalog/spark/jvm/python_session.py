"""Creates a PySpark session for a session of the JVM, for features that only PySpark has.

The Connect client has no `pyspark.SparkContext`. It imports this module, but does not use it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyspark
from pyspark import SparkConf
from pyspark.sql import SparkSession

_lock = threading.Lock()


def python_session(session: Any) -> SparkSession:
    """Returns the PySpark session for a session of the JVM. In a sidecar, the Python context has to be created
    first.
    """
    with _lock:
        context = _context(session.sparkContext())
        first = SparkSession._instantiatedSession
        if first is not None and first._sc is context:
            return SparkSession(context, session)
        with _unchanged_sessions():
            return SparkSession(context, session)


def _context(of_jvm: Any) -> "pyspark.SparkContext":
    """Returns the PySpark context for a context of the JVM. It is created once."""
    known = pyspark.SparkContext._active_spark_context
    if known is not None and known._jsc is not None and not known._jsc.sc().isStopped():
        return known
    if known is not None:
        _forget(known)
    gateway: Any = pyspark.SparkContext._gateway
    java = gateway.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(of_jvm)
    return pyspark.SparkContext(
        gateway=gateway, jsc=java, conf=SparkConf(_jvm=gateway.jvm, _jconf=java.getConf())
    )


def _forget(stopped: "pyspark.SparkContext") -> None:
    """Drops the PySpark objects of a context that the JVM has stopped."""
    if stopped._accumulatorServer is not None:
        stopped._accumulatorServer.shutdown()
    pyspark.SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


@contextmanager
def _unchanged_sessions() -> Iterator[None]:
    """Restores the default and the active session of the JVM, which PySpark changes with its first session."""
    gateway: Any = pyspark.SparkContext._gateway
    sessions = gateway.jvm.org.apache.spark.sql.classic.SparkSession
    default, active = sessions.getDefaultSession(), sessions.getActiveSession()
    try:
        yield
    finally:
        if default.isDefined():
            sessions.setDefaultSession(default.get())
        else:
            sessions.clearDefaultSession()
        if active.isDefined():
            sessions.setActiveSession(active.get())
        else:
            sessions.clearActiveSession()
