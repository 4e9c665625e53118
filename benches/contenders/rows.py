"""The work that every contender does with the rows that it reads.

It takes the Arrow batches one by one, counts the rows, adds up a column, and keeps nothing in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COLUMN = "d3"
PREDICATE = "i1 < 500000"
"""The predicate of the query that reads `COLUMN`. It is true for half of the rows, and its own column is not
returned.
"""
LIMIT = 500_000
KEYS, KEY_STEP = 1_000_000, 10
"""`i1` is joined with the numbers from 0 to `KEYS` in steps of `KEY_STEP`. A tenth of the rows have such a number."""


def take(stream: Any) -> tuple[int, float]:
    """Reads any object with `__arrow_c_stream__`. Returns the number of rows and the sum of `COLUMN`."""
    return take_batches(pa.RecordBatchReader.from_stream(stream))


def take_batches(batches: Iterable[pa.RecordBatch]) -> tuple[int, float]:
    count, total = 0, 0.0
    for batch in batches:
        count += batch.num_rows
        total += pc.sum(batch.column(COLUMN)).as_py() or 0.0
    return count, total


def answer(some: tuple[int, float], everything: tuple[int, float]) -> dict[str, Any]:
    return {"filter": some[0], "filter sum": some[1], "rows": everything[0], "sum": everything[1]}
