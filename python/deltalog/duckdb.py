"""Lets DuckDB read tables: `deltalog.duckdb.source(table)`, and `deltalog.sql` for a query over tables.

DuckDB 2 tells a source which columns it needs, and offers its filters, and the scan evaluates the filters that it can.
DuckDB has no public interface for this; this is the only module that uses the private interface. If the private
interface does not exist, as in DuckDB 1, the source is a pyarrow dataset (`duckdb_dataset.py`), or, without pyarrow, a
stream of all rows and columns, which DuckDB filters.
"""

import importlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import groupby
from typing import TYPE_CHECKING, Any

from deltalog.checked import is_text
from deltalog.conditions import (
    Location,
    NotTranslated,
    Rows,
    column,
    ensure_distinct,
    flat,
    literal,
    translated,
)
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument
from deltalog.extras import missing_extra, required

if TYPE_CHECKING:
    import duckdb

__all__ = ["source", "sql"]

_INSTALL = "pip install 'deltalog[sql]'"
_OLDEST = (1, 5)
"""The oldest version of DuckDB in which a relation can be read after the Python variable of its connection is gone."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def source(table: Location, *, storage_options: Mapping[str, str] | None = None) -> Any:
    """Returns an object that DuckDB reads as a table.

    Pass it to `connection.register("trips", source)` or `connection.from_arrow(source)`, or use the name of its Python
    variable in a query. It can be read any number of times, and always has the rows of the same version: the newest one
    when it is created, or the version of the `DeltaTable`. Files and pages that cannot contain rows which a filter
    selects are not read.

    Args:
        table: a `DeltaTable`, which may be opened at any version, or the path or URL of a table.
        storage_options: storage options, if `table` is a path or URL.

    Raises:
        ExtraRequiredError: DuckDB is not installed.
        InvalidArgumentError: `storage_options` were passed with a `DeltaTable`, which has its own.
        NotATableError: there is no table.
    """
    required("duckdb", "deltalog.duckdb", _INSTALL)
    rows = Rows.of(table, storage_options)
    try:
        private = importlib.import_module("duckdb._sources")
        nodes = importlib.import_module("duckdb._sources.nodes")
    except ModuleNotFoundError:
        return _for_duckdb_1(rows)
    return _filtering(private.ArrowScanSource, nodes)(rows)


def sql(query: str, /, **tables: Location) -> "duckdb.DuckDBPyRelation":
    """Returns the result of a query over tables, as a DuckDB relation. The query runs when the relation is read.

    ```python
    deltalog.sql("SELECT city, sum(km) FROM trips GROUP BY city", trips="/data/trips").fetchall()
    ```

    The relation has its own connection. Convert it with `.to_arrow_table()`, `.df()` (pandas) or `.pl()` (Polars).

    Args:
        query: one query, in DuckDB's SQL.
        tables: the tables, by the names that the query uses. Each is a `DeltaTable`, a path or a URL.

    Raises:
        ExtraRequiredError: DuckDB is not installed, or is older than 1.5: `pip install 'deltalog[sql]'`.
        InvalidArgumentError: DuckDB does not accept the query; the query is more than one statement, or has no result,
            such as a COPY; or the names of two tables differ only in upper and lower case. If computing the rows fails
            later, DuckDB raises its own error.
        NotATableError: there is no table.
    """
    if not is_text(query):
        raise wrong_argument("query", query, "a query in SQL, as text")
    engine: Any = required("duckdb", "deltalog.sql", _INSTALL)
    if tuple(map(int, engine.__version__.split(".")[:2])) < _OLDEST:
        old = f"deltalog.sql needs DuckDB 1.5 or newer, and DuckDB {engine.__version__} is installed"
        raise missing_extra(old, _INSTALL)
    ensure_distinct(tables)
    connection = engine.connect()
    # Otherwise an unknown name in the query would refer to a variable of this function.
    connection.execute("SET python_enable_replacements = false")
    for name, table in tables.items():
        connection.register(name, source(table))
    try:
        has_result = _has_result(query, connection, engine)
        result: duckdb.DuckDBPyRelation | None = connection.sql(query) if has_result else None
    except engine.Error as error:
        refused = InvalidArgumentError(f"DuckDB does not accept the query: {error}")
        raise hinted(
            refused, "correct the query; it names tables by the names of the other arguments"
        ) from error
    if result is None:
        raise wrong_argument("query", query, "a statement that returns rows, such as a SELECT")
    return result


def _has_result(query: str, connection: Any, engine: Any) -> bool:
    """Returns whether a text is a query: it is not empty, and not a statement without a result.

    Raises:
        InvalidArgumentError: it is more than one statement. DuckDB would execute all of them, and return the last
            result.
    """
    statements = connection.extract_statements(query)
    # DuckDB 1 splits one PIVOT into several statements, so the statements of the text are counted by their semicolons.
    encoded, comment = query.encode(), getattr(engine.token_type, "comment", None)
    tokens = (place for place, kind in engine.tokenize(query) if kind != comment)
    runs = groupby(encoded[place : place + 1] == b";" for place in tokens)
    if len(statements) > 1 and sum(not is_semicolon for is_semicolon, _ in runs) > 1:
        raise hinted(InvalidArgumentError("the query has several statements"), "pass one query at a time")
    if not statements:
        return False
    statement = statements[-1]
    results, kinds = engine.ExpectedResultType, engine.StatementType
    # These may have a result according to DuckDB, but DuckDB 1 executes a COPY without returning one.
    if statement.type in (kinds.CREATE, kinds.COPY):
        return False
    return results.QUERY_RESULT in statement.expected_result_type


def _for_duckdb_1(rows: Rows) -> Any:
    """Returns a source for DuckDB 1, which uses pyarrow to filter Arrow streams if pyarrow is installed."""
    try:
        import pyarrow.dataset  # noqa: F401
    except ModuleNotFoundError:
        return _Stream(rows)
    from deltalog import duckdb_dataset

    return duckdb_dataset.source(rows)


class _Stream:
    """All rows of a table, for DuckDB 1 without pyarrow, which does not pass columns or filters to a source."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._schema = rows.empty()

    def __arrow_c_schema__(self) -> object:
        """Returns the schema. Without this method, DuckDB would begin to read the rows several times for each query,
        only to find out the schema.
        """
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.read(None, None).__arrow_c_stream__(requested_schema)


def _filtering(base: Any, nodes: Any) -> Any:
    """Returns a class for sources that accept filters. The class is defined inside this function because its base class
    is DuckDB's, which may not be installed.

    Args:
        base: DuckDB's base class of sources.
        nodes: DuckDB's module with the classes of filter expressions.
    """

    class TableSource(base):  # type: ignore[misc]
        """The rows of a table at one version."""

        schema_is_stable = True

        def __init__(self, rows: Rows) -> None:
            super().__init__(rows)
            self._rows = rows
            self._schema = rows.empty()

        def __arrow_c_schema__(self) -> object:
            return self._schema.__arrow_c_schema__()

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return self._rows.read(None, None).__arrow_c_stream__(requested_schema)

        def rows(self) -> int:
            """Returns the number of rows, according to the log."""
            return self._rows.snapshot.count()

        def accepts(self, predicate: Any) -> bool:
            """Returns whether the scan can evaluate a filter exactly."""
            condition, _ = translated([predicate], lambda node: _sql(node, nodes), self._rows)
            return condition is not None

        def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
            """Returns the rows that all filters select, and True, which tells DuckDB that the stream has exactly the
            requested columns.
            """
            known = self._schema.column_names
            names = None if columns is None else [known[index] for index in columns]
            condition = " AND ".join(_sql(node, nodes) for node in filters) or None
            return self._rows.read(names, condition).__arrow_c_stream__(), True

    return TableSource


def _sql(node: Any, nodes: Any) -> str:
    """Returns the SQL for a filter. Raises `NotTranslated` if it has no exact translation."""
    if isinstance(node, nodes.Binary):
        if node.op in ("AND", "OR"):
            parts = flat(node, lambda part: _sides(part, node.op, nodes))
            return "(" + f" {node.op} ".join(_sql(part, nodes) for part in parts) + ")"
        operator = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}[node.op]
        return f"({_column(node.left, nodes)} {operator} {_literal(node.right, nodes)})"
    if isinstance(node, nodes.Unary) and node.op == "NOT":
        return f"(NOT {_sql(node.operand, nodes)})"
    if isinstance(node, nodes.Postfix) and node.op in ("IS NULL", "IS NOT NULL"):
        return f"({_column(node.operand, nodes)} {node.op})"
    if isinstance(node, nodes.In):
        values = ", ".join(_literal(value, nodes) for value in node.values)
        return f"({_column(node.operand, nodes)} IN ({values}))"
    raise NotTranslated


def _sides(node: Any, op: str, nodes: Any) -> tuple[Any, Any] | None:
    return (node.left, node.right) if isinstance(node, nodes.Binary) and node.op == op else None


def _column(node: Any, nodes: Any) -> str:
    if not isinstance(node, nodes.Col):
        raise NotTranslated
    return column(*node.parts)


def _literal(node: Any, nodes: Any) -> str:
    """Returns the SQL for a constant. DuckDB has converted it to the type of the column."""
    if not isinstance(node, nodes.Lit):
        raise NotTranslated
    kind, value = node.type, node.value
    if kind == "TIMESTAMP WITH TIME ZONE":
        value = _EPOCH + timedelta(microseconds=value)
    elif not (
        kind
        in ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP")
        or kind.startswith("DECIMAL")
    ):
        raise NotTranslated  # For example, SQL has no literal for a 32-bit float.
    return literal(value)
