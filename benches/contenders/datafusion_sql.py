"""DataFusion on the bare Parquet files.

Other contenders run the queries of `filter_rows` and `join_rows` with another `with_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from datafusion import SessionContext

from benches.contenders import rows
from benches.watch import Watch

NAME = "rows_of_table"
WithTable = Callable[[str], Any]
"""Returns a session in which a table has the name `NAME`."""


def bare_files(table: str) -> Any:
    context = SessionContext()
    context.register_parquet(NAME, f"{table}/")
    return context


def filter_rows(watch: Watch, table: str, with_table: WithTable = bare_files) -> dict[str, Any]:
    with watch("filter"):
        return _totals(f"WHERE {rows.PREDICATE}", table, with_table)


def join_rows(watch: Watch, table: str, with_table: WithTable = bare_files) -> dict[str, Any]:
    with watch("join"):
        keys = f"(SELECT value AS i1 FROM generate_series(0, {rows.KEYS - 1}, {rows.KEY_STEP}))"
        return _totals(f"JOIN {keys} AS keys USING (i1)", table, with_table)


def _totals(rest: str, table: str, with_table: WithTable) -> dict[str, Any]:
    query = f"SELECT count(*) AS rows, sum({rows.COLUMN}) AS sum FROM {NAME} {rest}"
    session = with_table(table)  # It must exist until the rows have been read.
    [row] = session.sql(query).to_pylist()
    return dict(row)
