"""DuckDB with its Parquet reader. Its Delta reader is not used, because it is an extension that must be downloaded.

Other contenders run the queries of `filter_rows` and `join_rows` with another `source_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb

from benches.contenders import rows
from benches.watch import Watch

SourceOf = Callable[[str], Any]
"""Opens a table as an object that can be registered in a DuckDB connection."""


def scan(watch: Watch, table: str) -> dict[str, Any]:
    files = f"read_parquet('{table}/*.parquet')"
    with watch("filter"):
        some = rows.take(
            duckdb.execute(f"SELECT {rows.COLUMN} FROM {files} WHERE {rows.PREDICATE}").to_arrow_reader()
        )
    with watch("all columns"):
        everything = rows.take(duckdb.execute(f"FROM {files}").to_arrow_reader())
    return rows.answer(some, everything)


def filter_rows(watch: Watch, table: str, source_of: SourceOf | None = None) -> dict[str, Any]:
    with watch("filter"):
        return _totals(f"WHERE {rows.PREDICATE}", table, source_of)


def join_rows(watch: Watch, table: str, source_of: SourceOf | None = None) -> dict[str, Any]:
    with watch("join"):
        keys = f"(SELECT range AS i1 FROM range(0, {rows.KEYS}, {rows.KEY_STEP}))"
        return _totals(f"JOIN {keys} USING (i1)", table, source_of)


def _totals(rest: str, table: str, source_of: SourceOf | None) -> dict[str, Any]:
    """Queries a table through `source_of`, or its bare Parquet files if `source_of` is None."""
    connection = duckdb.connect()
    if source_of is None:
        rows_of = f"read_parquet('{table}/*.parquet')"
    else:
        connection.register("rows_of_table", source_of(table))
        rows_of = "rows_of_table"
    query = f"SELECT count(*), sum({rows.COLUMN}) FROM {rows_of} {rest}"
    [(count, total)] = connection.execute(query).fetchall()
    return {"rows": count, "sum": total}
