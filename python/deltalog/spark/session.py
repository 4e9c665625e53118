"""`enable`: makes the format `deltalog` known to a Spark session."""

import threading
import warnings
from typing import Any

from pyspark.sql import SparkSession

from deltalog.spark import errors
from deltalog.spark._requirements import require_server
from deltalog.spark.bridge import Bridge
from deltalog.spark.exceptions import raises_sparks_errors
from deltalog.spark.jvm import Jvm, alias, probe
from deltalog.spark.jvm.compile import PACKAGE, load
from deltalog.spark.sql.names import is_connect
from deltalog.spark.write import interrupts

_CATALOG = "spark.sql.catalog.spark_catalog"
_BUILTIN = "builtin"  # the value from Spark 4.1 on when nobody has set one

_lock = threading.Lock()
_bridged: Any = None  # the gateway whose JVM has a bridge already


@raises_sparks_errors
def enable(spark: SparkSession, *, alias_delta: bool = False) -> SparkSession:
    """Enables the format `deltalog` in `spark`, and returns it.

    Harmless when called twice. Each session made by `newSession()` needs its own call.

    With `alias_delta=True` the format also has the name `delta`, so that existing notebooks and catalogs work:
    `format("delta")`, `USING delta`, ``delta.`/path` `` and tables whose provider is `delta`. It holds for all
    sessions of the application, and is an `InvalidArgumentError` where the JVM connector is present.
    """
    require_server(spark.version)
    if is_connect(spark):
        from deltalog.spark import portable

        portable.enable(spark, alias_delta)
        return spark
    with _lock:
        missing = probe.missing_symbols(spark)
        if missing:
            warnings.warn(
                f"deltalog cannot use the native path of Spark {spark.version} ({missing} is missing); tables are served by the slower "
                "Python Data Source instead",
                RuntimeWarning,
                stacklevel=2,
            )
            from deltalog.spark import portable

            portable.enable(spark, alias_delta)
            return spark
        jvm = _bridge(spark)
        _plan_statements(jvm, spark)
        _answer_from_log(jvm, spark)
        if alias_delta:
            alias.add(jvm, spark._jsparkSession)
        _own_paths(spark, alias_delta)
        interrupts.install()
    return spark


def _bridge(spark: SparkSession) -> Jvm:
    """The classes, the callback server and the bridge, once per JVM."""
    global _bridged
    context = spark.sparkContext
    gateway: Any = context._gateway
    jvm = Jvm(gateway)
    if _bridged is not gateway:
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        errors.install_conversion()
        load(gateway.jvm, gateway, context)
        jvm.static("Bridge", "install", Bridge(jvm))
        _bridged = gateway
    return jvm


def _plan_statements(jvm: Jvm, spark: SparkSession) -> None:
    methods = spark._jsparkSession.experimental()
    strategies = jvm.sequence(methods.extraStrategies())
    if not any(strategy.getClass().getSimpleName() == "DeltalogStrategy" for strategy in strategies):
        getattr(methods, "extraStrategies_$eq")(jvm.seq([jvm.new("DeltalogStrategy"), *strategies]))


def _answer_from_log(jvm: Jvm, spark: SparkSession) -> None:
    methods = spark._jsparkSession.experimental()
    rules = jvm.sequence(methods.extraOptimizations())
    if not any(rule.getClass().getSimpleName() == "AnswersFromLog" for rule in rules):
        getattr(methods, "extraOptimizations_$eq")(jvm.seq([*rules, jvm.new("AnswersFromLog")]))


def _own_paths(spark: SparkSession, alias_delta: bool) -> None:
    """Puts our catalog over the built-in one, which hands names on and adds paths.

    With the alias ours also replaces the JVM connector's catalog, which is not there to be loaded.
    """
    ours = f"{PACKAGE}.DeltalogCatalog"
    current = spark.conf.get(_CATALOG, None)
    if current == ours:
        return
    if current not in (None, _BUILTIN) and not (alias_delta and current == alias.CONNECTORS_CATALOG):
        warnings.warn(
            f"{_CATALOG} is set to {current} and stays so: deltalog.`/path` is no table name in this session, and a table's name "
            "keeps the version that it was first read at until REFRESH TABLE. spark.read.format('deltalog').load(path) always sees the newest",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    spark.conf.set(_CATALOG, ours)
