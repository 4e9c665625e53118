"""Lets Polars read tables, as lazy frames: `deltalog.polars.scan(table)`.

Polars tells the source which columns it needs, and passes its filter. deltalog's scan evaluates the parts of the filter
that it can, and applies deletion vectors, column mapping and the rest of the protocol. This works with Polars'
in-memory engine and its streaming engine, and requires Polars 1.30 or newer.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deltalog import _internal
from deltalog.arguments import count_argument
from deltalog.checked import checked
from deltalog.conditions import Location, Rows, translated
from deltalog.extras import required
from deltalog.polars_conditions import conjuncts, sql

if TYPE_CHECKING:
    import polars

__all__ = ["scan"]

_INSTALL = "pip install 'deltalog[polars]'"

_ROWS = 1 << 17
"""The minimum number of rows in a frame that is passed to Polars, which is slow if there are many small frames."""


@checked
def scan(
    table: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    ordered: bool = False,
    threads: int | None = None,
) -> "polars.LazyFrame":
    """Returns the rows of a table as a Polars `LazyFrame`.

    The frame always has the rows of the same version: the newest one when it is created, or the version of the
    `DeltaTable`. Files and pages that cannot contain rows which a filter selects are not read.

    Args:
        table: a `DeltaTable`, which may be opened at any version, or the path or URL of a table.
        storage_options: storage options, if `table` is a path or URL.
        ordered: whether the rows have the same order whenever the frame is computed, so that `slice` and
            `with_row_index` always return the same rows. Otherwise the order is not defined, which may be faster.
        threads: the maximum number of threads that read files. The default is one for each processor, and more for a
            remote store.

    Raises:
        ExtraRequiredError: Polars is not installed.
        InvalidArgumentError: `storage_options` were passed with a `DeltaTable`, which has its own, or `threads` is not
            a whole number from 1.
        NotATableError: there is no table.
    """
    readers = count_argument(threads, "threads")
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
        limit = n_rows if is_whole else None
        wanted = min(batch_size or _ROWS, _ROWS)
        stream = rows.read(
            with_columns, condition, limit=limit, ordered=ordered, batch_rows=wanted, threads=readers
        )
        for frame in _frames(pl, stream, wanted, left):
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
    """Yields the rows of a stream as frames, each of several batches, with at least `wanted` rows.

    If Polars requests only the `first` rows, a frame may have only this number of rows.
    """
    held: list[_internal.ArrowBatch] = []
    count = 0
    for batch in stream:
        held.append(batch)
        count += batch.num_rows
        if count >= (wanted if first is None else min(wanted, first)):
            yield _frame(pl, held)
            held, count = [], 0
    if held:
        yield _frame(pl, held)


def _frame(pl: Any, batches: list[_internal.ArrowBatch]) -> "polars.DataFrame":
    """Returns batches as one frame. Polars takes less time for one import than for several and `concat`."""
    frame: polars.DataFrame = pl.DataFrame(_internal.arrow_stream(batches))
    return frame
