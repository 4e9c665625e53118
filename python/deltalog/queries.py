"""`deltalog.sql`: queries over tables, by DuckDB or DataFusion, whichever is installed."""

import importlib.util
from collections.abc import Mapping
from typing import Any

from deltalog.conditions import Location, opened_table
from deltalog.extras import missing_extra

__all__ = ["sql"]

_INSTALL = "pip install 'deltalog[sql]'"


def sql(query: str, /, **tables: Location) -> Any:
    """Returns the result of a query over tables. DuckDB runs the query when the result is read.

    ```python
    deltalog.sql("SELECT city, sum(km) FROM trips GROUP BY city", trips="/data/trips").to_arrow_table()
    ```

    If DuckDB is not installed, but DataFusion and deltalog-datafusion are, DataFusion runs the query, which must then
    be in DataFusion's SQL. `deltalog.duckdb.sql` and `deltalog.datafusion.sql` always use the library that they name.

    The result is a relation of DuckDB, or a frame of DataFusion. Both have `to_arrow_table`, and can be passed to
    whatever reads an Arrow stream, such as `write_deltalake`. Other methods differ: `.df()`, `.pl()` and `.fetchall()`
    of DuckDB are `.to_pandas()`, `.to_polars()` and `.to_pylist()` of DataFusion.

    Args:
        query: one query.
        tables: the tables, by the names that the query uses. Each is a `DeltaTable`, a path or a URL.

    Raises:
        ExtraRequiredError: neither library is installed, or DuckDB is older than 1.5: `pip install 'deltalog[sql]'`
            installs DuckDB.
        InvalidArgumentError: the library does not accept the query, or the query is more than one statement or has no
            result. If computing the rows fails later, the library raises its own error.
        NotATableError: there is no table.
    """
    return query_over(query, tables, None)


def query_over(query: str, tables: Mapping[str, Location], storage_options: Mapping[str, str] | None) -> Any:
    """Does the same as `sql`, with storage options for all tables, which must be paths or URLs if there are options."""
    if _is_installed("duckdb"):
        from deltalog import duckdb

        opened = {name: opened_table(table, storage_options, name) for name, table in tables.items()}
        return duckdb.sql(query, **opened)
    if _is_installed("datafusion") and _is_installed("deltalog_datafusion"):
        from deltalog import datafusion

        return datafusion.query_over(query, tables, storage_options)
    raise missing_extra(
        "deltalog.sql needs duckdb, or datafusion and deltalog-datafusion, which are not installed", _INSTALL
    )


def _is_installed(module: str) -> bool:
    found = importlib.util.find_spec(module)
    # A folder of this name could be imported, too, but it has no origin.
    return found is not None and found.origin is not None
