"""Tables as lazy frames of Polars: `deltalog.polars.scan(table)`.

Polars asks for columns and gives its filter, and the scan evaluates what it can of it; deletion vectors, column mapping
and everything else of the protocol are the scan's. Works in the in-memory and the streaming engine, from Polars 1.30.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deltalog import _internal
from deltalog.conditions import Location, Rows, translated
from deltalog.extras import required
from deltalog.polars_conditions import conjuncts, sql

if TYPE_CHECKING:
    import polars

__all__ = ["scan"]

_INSTALL = "pip install 'deltalog[polars]'"

_ROWS = 1 << 17
"""The rows of a frame, at least. Polars takes long for many small ones."""


def scan(table: Location, *, storage_options: Mapping[str, str] | None = None) -> "polars.LazyFrame":
    """Returns the rows of a table as a lazy frame of Polars.

    The frame keeps the version that is the newest now, or the version that a `DeltaTable` shows. Files and pages that
    cannot have a row of a filter are not read. Files come in any order.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        storage_options: the options of the store, for a path or URL.

    Raises:
        ExtraRequiredError: Polars is not installed.
        InvalidArgumentError: `storage_options` were passed with a `DeltaTable`, which has its own.
        NotATableError: there is no table.
    """
    pl: Any = required("polars", "deltalog.polars", _INSTALL)
    plugins: Any = required("polars.io.plugins", "deltalog.polars", _INSTALL)
    rows = Rows.of(table, storage_options)
    schema = pl.DataFrame(rows.empty()).schema

    def source(
        with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator["polars.DataFrame"]:
        condition, is_whole = None, True
        if predicate is not None:
            condition, others = translated(conjuncts(predicate), lambda node: sql(node, pl, schema), rows)
            is_whole = not others
        left = n_rows
        for frame in _frames(pl, rows.read(with_columns, condition), min(batch_size or _ROWS, _ROWS), left):
            kept = frame if is_whole else frame.filter(predicate)
            if left is not None:
                kept = kept.head(left)
                left -= kept.height
            yield kept
            if left == 0:
                return

    frame: polars.LazyFrame = plugins.register_io_source(source, schema=schema, is_pure=True)
    return frame


def _frames(
    pl: Any, stream: _internal.ArrowStream, wanted: int, first: int | None
) -> Iterator["polars.DataFrame"]:
    """Yields the batches of a stream as frames of several batches; the first one as soon as it has `first` rows."""
    held: list[Any] = []
    count = 0
    for batch in stream:
        held.append(pl.DataFrame(batch))
        count += batch.num_rows
        if count >= (wanted if first is None else min(wanted, first)):
            yield pl.concat(held, rechunk=False)
            held, count = [], 0
    if held:
        yield pl.concat(held, rechunk=False)
