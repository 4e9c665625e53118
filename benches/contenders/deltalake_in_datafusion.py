"""`deltalake` as a table provider of DataFusion.

If the table has deletion vectors, the Python package `datafusion` refuses this provider (its optimizer "rejects node
CooperativeExec"). In this case, the query is executed by the DataFusion inside `deltalake`, which has the same major
version.
"""

from functools import partial
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from deltalake import DeltaTable, QueryBuilder

from benches.contenders import datafusion_sql


def _with_table(table: str) -> Any:
    opened = DeltaTable(table)
    if "deletionVectors" in (opened.protocol().reader_features or []):
        return _Queries(QueryBuilder().register(datafusion_sql.NAME, opened))
    context = SessionContext()
    context.register_table(datafusion_sql.NAME, opened)
    return context


class _Queries:
    """The DataFusion of `deltalake`, with the methods of a session that the queries call."""

    def __init__(self, queries: QueryBuilder) -> None:
        self._queries = queries

    def sql(self, query: str) -> "_Rows":
        return _Rows(self._queries.execute(query))


class _Rows:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def to_pylist(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(self._stream).read_all().to_pylist()
        return rows


filter_rows = partial(datafusion_sql.filter_rows, with_table=_with_table)
join_rows = partial(datafusion_sql.join_rows, with_table=_with_table)
