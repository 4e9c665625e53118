"""The function `enable`, which makes the format `deltalog` available in a Spark session."""

import os
import threading
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltalog.caller import warn_caller
from deltalog.spark._requirements import require_server
from deltalog.spark.bridge import Bridge
from deltalog.spark.connect.server import has_our_catalog, without_extensions
from deltalog.spark.errors import UnsupportedFeatureError
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.failures import transport
from deltalog.spark.failures.java import kept
from deltalog.spark.jvm import Jvm, alias, callback
from deltalog.spark.jvm.jars import PACKAGE, ClassesError, load
from deltalog.spark.secrecy import hide_from_py4j, hide_secrets
from deltalog.spark.sql.names import is_connect
from deltalog.spark.write import interrupts

_CATALOG = "spark.sql.catalog.spark_catalog"
_lock = threading.Lock()
_bridged: Any = None  # The gateway of the JVM that calls this process.


@raises_pyspark_errors
def enable(spark: SparkSession, *, alias_delta: bool | None = None) -> SparkSession:
    """Enables the format `deltalog` in `spark` and in all sessions that are created later, and returns `spark`.

    Later sessions include those created by `newSession()` and `cloneSession()`, and the sessions of stream batches, of
    new Spark contexts, and of Spark Connect clients of this application. Further calls only apply `alias_delta`.
    Another session that was already in use needs its own call; until then, it refuses statements that name a table of
    the catalog.

    The format is also called `delta`, so that existing notebooks and catalogs work: `format("delta")`, `USING delta`,
    ``delta.`/path` `` and tables whose provider is `delta`. If another data source, such as the JVM connector, already
    has this name, `delta` means that source instead. `alias_delta=False` turns the name off, and
    `alias_delta=True` raises an error if another source has it, in `spark` and later sessions. If the Python Data
    Source is used instead of the native path, only `format("delta")` works, and only in `spark`.

    Raises:
        UnsupportedFeatureError: the JVM has classes of another version of deltalog, or another Python process has
            enabled deltalog in it and still runs.
        InvalidArgumentError: `alias_delta` is true, but another format is called `delta`. Nothing is enabled then.
        PySparkRequiredError: the session's server is older than Spark 4.
    """
    require_server(spark.version)
    if is_connect(spark):
        return _enable_connect(spark, alias_delta)
    hide_from_py4j()
    gateway: Any = spark.sparkContext._gateway
    with _lock:
        jvm = Jvm(gateway)
        problem = _problem(spark, jvm)
        if problem is not None:
            warn_caller(
                f"deltalog cannot use the native path of Spark {spark.version} ({problem}); the slower Python Data "
                "Source is used instead",
                RuntimeWarning,
            )
            return _enable_portable(spark, alias_delta)
        if alias_delta:
            alias.check(jvm, spark._jsparkSession)
        _bridge(jvm)
        if alias_delta is not None:
            alias.choose(jvm, spark._jsparkSession, alias_delta)
        jvm.static("SessionSetup", "extend", spark._jsparkSession)
        _analyze_statements(jvm, spark)
        _parse_statements(jvm, spark)
        _check_catalog(spark)
        interrupts.install()
    return spark


def _enable_connect(spark: SparkSession, alias_delta: bool | None) -> SparkSession:
    """Registers the Python Data Source with a Connect server, unless the server uses deltalog's catalog and needs
    nothing else.
    """
    if not has_our_catalog(spark):
        try:
            return _enable_portable(spark, alias_delta)
        except PySparkException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
            raise without_extensions(spark) from error
    from deltalog.spark import portable

    if alias_delta is not None:
        spark.conf.set(alias.SETTING, str(alias_delta).lower())
    if alias_delta and not portable.has_alias(spark):
        raise UnsupportedFeatureError(
            "alias_delta=True is not possible: the server of this session does not know the name delta"
        )
    return spark


def _enable_portable(spark: SparkSession, alias_delta: bool | None) -> SparkSession:
    from deltalog.spark import portable

    hide_secrets(spark)
    portable.enable(spark, alias_delta)
    return spark


def _problem(spark: SparkSession, jvm: Jvm) -> str | None:
    """Adds the Java classes to the driver. Returns the reason if this is impossible, and otherwise None."""
    try:
        load(jvm.classes, spark.version)
    except ClassesError as error:
        return str(error)
    return None


def _bridge(jvm: Jvm) -> None:
    """Lets the JVM call this process; does nothing if the JVM already calls it.

    Raises an error if the JVM already calls another process that is still running. The JVM calls only one process, so
    the statements of the other process would lose the calls that they need.
    """
    global _bridged
    if _bridged is not jvm.gateway:
        other = jvm.static("Bridge", "other", os.getpid())
        if other:
            raise UnsupportedFeatureError(
                f"the Python process {other} has enabled deltalog in the JVM of this session, and receives its calls: "
                "end that process first. Without enable, SQL and DataFrames of this process use the other one"
            )
        transport.install_conversion()
        jvm.static("Bridge", "install", callback.serve(jvm, Bridge(jvm, kept)))
        _bridged = jvm.gateway


def _analyze_statements(jvm: Jvm, spark: SparkSession) -> None:
    problem = jvm.static("AnalyzerHook", "install", spark._jsparkSession)
    if problem is not None:
        warn_caller(
            f"deltalog cannot use the analyzer of Spark {spark.version} ({problem}): the statements DELETE, UPDATE and "
            "MERGE are refused in this session; use the methods of deltalog.tables.DeltaTable",
            RuntimeWarning,
        )


def _parse_statements(jvm: Jvm, spark: SparkSession) -> None:
    problem = jvm.static("StatementParser", "install", spark._jsparkSession)
    if problem is not None:
        warn_caller(
            f"deltalog cannot use the parser of Spark {spark.version} ({problem}): statements that Spark does not "
            "know, such as DESCRIBE HISTORY, are syntax errors in this session; use the methods of "
            "deltalog.tables.DeltaTable",
            RuntimeWarning,
        )


def _check_catalog(spark: SparkSession) -> None:
    """Warns if the user has configured another catalog, which is not replaced."""
    current = str(spark.conf.get(_CATALOG))
    if not current.startswith(f"{PACKAGE}."):
        warn_caller(
            f"{_CATALOG} is set to {current} and is not changed: in this session deltalog.`/path` is not a table "
            "name, SQL cannot define or change tables except by INSERT INTO, and a table that is read by name stays at "
            "the version that was read first until REFRESH TABLE. "
            "spark.read.format('deltalog').load(path) always reads the newest version",
            RuntimeWarning,
        )
