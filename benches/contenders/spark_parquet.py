"""Spark's own Parquet source, which shows how fast Spark itself is. It reads a table's directory as plain Parquet
files.
"""

from __future__ import annotations

from typing import Any

from benches.contenders import spark_changed, spark_session, spark_start
from benches.watch import Watch


def start(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_start.selects(watch, spark_start.started(), "parquet", table)


def scan(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.scan(watch, spark_session.session(), "parquet", table)


def scan_vectors(watch: Watch, table: str) -> dict[str, Any]:
    return spark_session.scan_files(watch, spark_session.session(), table)


def write(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_session.write(watch, spark_session.session(), "parquet", table, target)


def statements(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return spark_changed.rows_alone(watch, spark_session.session(), table, target)
