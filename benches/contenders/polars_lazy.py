"""Polars with its streaming engine.

`scan` reads `scan_delta` in batches: Polars gets the list of files from `deltalake`, and reads them itself. Here, the
queries of `filter_rows` and `join_rows` read the bare Parquet files. Other contenders run the same queries with
another `frame_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from benches.contenders import rows
from benches.watch import Watch

FrameOf = Callable[[str], pl.LazyFrame]
"""Opens a table as a lazy frame."""


def scan(watch: Watch, table: str) -> dict[str, Any]:
    with watch("filter"):
        some = rows.take_batches(
            _batches(pl.scan_delta(table).filter(pl.col("i1") < rows.LIMIT).select(rows.COLUMN))
        )
    with watch("all columns"):
        everything = rows.take_batches(_batches(pl.scan_delta(table)))
    return rows.answer(some, everything)


def store_scan(watch: Watch, table: str, options: dict[str, str]) -> dict[str, Any]:
    with watch("all columns"):
        everything = rows.take_batches(_batches(pl.scan_delta(table, storage_options=options)))
    return {"rows": everything[0], "sum": everything[1]}


def _batches(frame: pl.LazyFrame) -> Iterator[pa.RecordBatch]:
    """Yields Arrow batches that share memory with the frame, so their strings have Polars' type."""
    for part in frame.collect_batches(engine="streaming"):
        yield from part.to_arrow(compat_level=pl.CompatLevel.newest()).to_batches()


def bare_files(table: str) -> pl.LazyFrame:
    return pl.scan_parquet(f"{table}/*.parquet")


def filter_rows(watch: Watch, table: str, frame_of: FrameOf = bare_files) -> dict[str, Any]:
    with watch("filter"):
        frame = frame_of(table).filter(pl.col("i1") < rows.LIMIT)
        return _totals(frame)


def join_rows(watch: Watch, table: str, frame_of: FrameOf = bare_files) -> dict[str, Any]:
    keys = pl.LazyFrame({"i1": range(0, rows.KEYS, rows.KEY_STEP)})
    with watch("join"):
        frame = frame_of(table).join(keys, on="i1")
        return _totals(frame)


def _totals(frame: pl.LazyFrame) -> dict[str, Any]:
    totals = frame.select(pl.len().alias("rows"), pl.col(rows.COLUMN).sum().alias("sum"))
    return totals.collect(engine="streaming").row(0, named=True)
