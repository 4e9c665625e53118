"""The JVM connector."""

from __future__ import annotations

from typing import Any

from benches.contenders import ordered, spark_changed, spark_session, spark_start, spark_stream, spark_wide
from benches.watch import Watch


def start(watch: Watch, table: str, target: str) -> dict[str, Any]:
    spark = spark_start.started()
    found = spark_start.selects(watch, spark, "delta", table)
    return {**found, **spark_start.merges(watch, spark, "delta", target)}


def scan(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.scan(watch, spark_session.session(), "delta", table)


def scan_vectors(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.scan_vectors(watch, spark_session.session(), "delta", table)


def write(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_session.write(watch, spark_session.session(), "delta", table, target)


def statements(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_changed.statements(watch, spark_session.session(), "delta", table)


def wide_merge(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_wide.wide_merge(watch, spark_session.session(), "delta", target)


def stream(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_stream.stream(watch, spark_session.session(), "delta", table, target)


def vacuum(watch: Watch, table: str, copy: str) -> dict[str, Any]:
    return spark_session.vacuum(watch, spark_session.session(), "delta", table, copy)


def optimize(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.optimize(watch, spark_session.session(), "delta", table, ordered.JOINED)


def z_order(watch: Watch, table: str) -> dict[str, Any]:
    order = f"ZORDER BY ({', '.join(ordered.COLUMNS)})"
    return spark_session.optimize(
        watch, spark_session.session(), "delta", table, ordered.target_size(table), order
    )


def convert(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.convert(watch, spark_session.session(), "delta", table)


def plan(watch: Watch, table: str) -> dict[str, Any]:
    """Plans a read while the snapshot cache of the JVM connector is empty."""
    spark = spark_session.session()
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
    return spark_session.plan(watch, spark, "delta", table, log.clearCache)
