"""DuckDB's Parquet reader, because its Delta reader is an extension that has to be downloaded."""

from __future__ import annotations

from typing import Any

import duckdb

from benches.contenders import rows
from benches.watch import Watch


def scan(watch: Watch, table: str) -> dict[str, Any]:
    files = f"read_parquet('{table}/*.parquet')"
    with watch("filter"):
        some = rows.take(
            duckdb.execute(f"SELECT {rows.COLUMN} FROM {files} WHERE {rows.PREDICATE}").to_arrow_reader()
        )
    with watch("all columns"):
        everything = rows.take(duckdb.execute(f"FROM {files}").to_arrow_reader())
    return rows.answer(some, everything)
