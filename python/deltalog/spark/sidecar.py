"""The Python process for a JVM in which no Python program has called `enable`.

    python -m deltalog.spark.sidecar

The JVM (`Sidecar.java`) starts this process when it calls Python for the first time. It passes its address in PySpark's
environment variables, and keeps the standard input of the process open. When the input ends, the process ends.
"""

import logging
import os
import signal
import sys
from typing import Any

import pyspark
from pyspark import SparkContext

from deltalog.errors import DeltaError, UnsupportedFeatureError
from deltalog.spark.bridge import Bridge
from deltalog.spark.failures import transport
from deltalog.spark.failures.java import told
from deltalog.spark.jvm import Jvm, callback
from deltalog.spark.jvm.jars import ClassesError, own_version
from deltalog.spark.secrecy import hide_from_py4j


def main() -> int:
    """Serves the JVM until it ends, and returns the exit status."""
    # Ctrl-C in a terminal is ignored here, because the JVM handles it and cancels the statement.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        connect()
    except (DeltaError, ClassesError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdin.buffer.read()
    return 0


def connect() -> None:
    """Lets the JVM call this process.

    Raises `UnsupportedFeatureError` if this process has a different version of deltalog or PySpark than the JVM.
    """
    SparkContext._ensure_initialized()
    gateway: Any = SparkContext._gateway
    hide_from_py4j()
    _check_pyspark(gateway.entry_point.sparkVersion())
    jvm = Jvm(gateway)
    _check_version(jvm.classes.version(), own_version())
    transport.install_conversion()
    # With this logger, PySpark logs errors as JSON, although it also raises them.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    gateway.entry_point.connected(callback.serve(jvm, Bridge(jvm, told)))


def _check_pyspark(spark: str) -> None:
    if spark.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        raise UnsupportedFeatureError(
            f"the application has Spark {spark}, but {sys.executable} has PySpark {pyspark.__version__}: install "
            f"PySpark {spark} there"
        )


def _check_version(of_jar: str, own: str) -> None:
    if of_jar != own:
        raise UnsupportedFeatureError(
            f"the jar of the application is of deltalog {of_jar}, but {sys.executable} has deltalog {own}: install "
            "the same version there"
        )


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Without this, Python would wait for threads that still execute calls of a JVM that has ended.
    os._exit(status)
