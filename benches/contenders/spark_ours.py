"""deltalog in a Spark session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

import deltalog.spark
from benches.contenders import ordered, spark_changed, spark_session, spark_start, spark_stream, spark_wide
from benches.watch import Watch
from deltalog._internal import forget_snapshots
from deltalog.spark.read import planner


def session() -> SparkSession:
    spark = spark_session.session()
    deltalog.spark.enable(spark)
    return spark


def start(watch: Watch, table: str, target: str) -> dict[str, Any]:
    spark = spark_start.started()
    with watch("enable"):
        deltalog.spark.enable(spark)
    found = spark_start.selects(watch, spark, "deltalog", table)
    return {**found, **spark_start.merges(watch, spark, "deltalog", target)}


def scan(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.scan(watch, session(), "deltalog", table)


def scan_vectors(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.scan_vectors(watch, session(), "deltalog", table)


def write(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_session.write(watch, session(), "deltalog", table, target)


def statements(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_changed.statements(watch, session(), "deltalog", table)


def wide_merge(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_wide.wide_merge(watch, session(), "deltalog", target)


def stream(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_stream.stream(watch, session(), "deltalog", table, target)


def vacuum(watch: Watch, table: str, copy: str) -> dict[str, Any]:
    return spark_session.vacuum(watch, session(), "deltalog", table, copy)


def optimize(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.optimize(watch, session(), "deltalog", table, ordered.JOINED)


def z_order(watch: Watch, table: str) -> dict[str, Any]:
    order = f"ZORDER BY ({', '.join(ordered.COLUMNS)})"
    return spark_session.optimize(watch, session(), "deltalog", table, ordered.target_size(table), order)


def convert(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.convert(watch, session(), "deltalog", table)


def plan(watch: Watch, table: str) -> dict[str, Any]:
    """Plans a read without the caches that deltalog keeps of tables that it has read before."""
    return spark_session.plan(watch, session(), "deltalog", table, forget)


def forget() -> None:
    """Drops deltalog's caches of a table: the newest snapshots, and the planners of earlier reads."""
    planner.forget()
    forget_snapshots()
