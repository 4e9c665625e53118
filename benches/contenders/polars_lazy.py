"""Polars: `scan_delta`, which gets the files from `deltalake` and reads them itself, by its streaming engine,
in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from benches.contenders import rows
from benches.watch import Watch


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
    """Returns Arrow that shares the memory of Polars, with its kind of strings."""
    for part in frame.collect_batches(engine="streaming"):
        yield from part.to_arrow(compat_level=pl.CompatLevel.newest()).to_batches()
