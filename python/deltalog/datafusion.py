"""Queries over tables by DataFusion: `deltalog.datafusion.sql`.

The package `deltalog_datafusion` makes the tables. It is a binary of its own for each major version of DataFusion.
"""

import threading
from collections.abc import Mapping
from typing import Any

from deltalog.checked import is_text
from deltalog.conditions import Location, ensure_distinct, lower
from deltalog.errors import DeltaError, InvalidArgumentError, hinted, wrong_argument
from deltalog.extras import required

__all__ = ["sql"]

_INSTALL = "pip install deltalog-datafusion"


def sql(query: str, /, **tables: Location) -> Any:
    """Returns the result of a query over tables, as a DataFusion `DataFrame`. The query runs when the frame is read.

    ```py
    deltalog.datafusion.sql("SELECT city, sum(km) FROM trips GROUP BY city", trips="/data/trips").to_pylist()
    ```

    Convert the frame with `.to_arrow_table()`, `.to_pandas()` or `.to_polars()`. Statements that change tables are
    refused.

    Args:
        query: one query, in DataFusion's SQL.
        tables: the tables, by the names that the query uses. Each is a `DeltaTable`, a path or a URL. DataFusion opens
            them again, with credentials from the environment.

    Raises:
        ExtraRequiredError: DataFusion is not installed, or deltalog-datafusion is not.
        InvalidArgumentError: DataFusion does not accept the query. If computing the rows fails later, DataFusion raises
            its own error.
        NotATableError: there is no table.
        UnsupportedFeatureError: the installed deltalog-datafusion is for another major version of DataFusion.
    """
    return query_over(query, tables, None)


def query_over(query: str, tables: Mapping[str, Location], storage_options: Mapping[str, str] | None) -> Any:
    """Does the same as `sql`, with storage options for all tables."""
    if not is_text(query):
        raise wrong_argument("query", query, "a query in SQL, as text")
    engine: Any = required("datafusion", "deltalog.datafusion", _INSTALL)
    provider: Any = required("deltalog_datafusion", "deltalog.datafusion", _INSTALL)
    names = {name: _normal(name) for name in tables}
    ensure_distinct(tables)
    opened = {}
    for name, table in tables.items():
        # In quotes, a query may use the name as it was passed.
        opened[name] = opened[names[name]] = provider.table(table, storage_options=storage_options)
    return _SESSION.query(engine, query, opened)


def _normal(name: str) -> str:
    """Returns a table's name as DataFusion reads it in a query without quotes: with ASCII letters in lower case."""
    return lower(name) if name.isidentifier() else name


class _Session:
    """The session of all queries.

    A DataFusion frame does not keep the session alive that has planned it, and fails once that session is gone. So
    there is one session for the whole process. Tables are registered in it only while a query is planned.
    """

    def __init__(self) -> None:
        self._context: Any = None
        self._planning = threading.Lock()

    def query(self, engine: Any, query: str, tables: Mapping[str, Any]) -> Any:
        options = engine.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        with self._planning:
            if self._context is None:
                self._context = engine.SessionContext()
            registered = []
            try:
                for name, table in tables.items():
                    place = '"' + name.replace('"', '""') + '"'
                    self._context.register_table(place, table)
                    registered.append(place)
                return self._context.sql_with_options(query, options)
            except DeltaError:
                raise
            except Exception as error:
                refused = InvalidArgumentError(f"DataFusion does not accept the query: {error}")
                raise hinted(
                    refused, "correct the query; it names tables by the names of the other arguments"
                ) from error
            finally:
                for place in registered:
                    self._context.deregister_table(place)


_SESSION = _Session()
