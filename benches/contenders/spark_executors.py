"""deltalog in a Spark session in which executors do the work that the driver would do in a local session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benches.contenders import spark_ours
from benches.watch import Watch
from deltalog.spark.sql.division import MIN_SIZE


def optimize(watch: Watch, table: str) -> dict[str, Any]:
    return _by_executors(spark_ours.optimize, watch, table)


def z_order(watch: Watch, table: str) -> dict[str, Any]:
    return _by_executors(spark_ours.z_order, watch, table)


def _by_executors(work: Callable[[Watch, str], dict[str, Any]], watch: Watch, table: str) -> dict[str, Any]:
    conf = spark_ours.session().conf
    conf.set(MIN_SIZE, "0")
    try:
        return work(watch, table)
    finally:
        conf.unset(MIN_SIZE)
