"""The settings of the cases `optimize` and `z-order`, and the check of their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = ("i0", "i1", "i2", "i3")
"""Columns of random numbers."""

FILES = 100

JOINED = 128 << 20
"""The size of joined files, in bytes."""


def target_size(table: str) -> int:
    """Returns the target size of a file with which the rows are divided into about `FILES` files."""
    return -(-sum(path.stat().st_size for path in Path(table).glob("*.parquet")) // FILES)


def answer(table: str) -> dict[str, Any]:
    """Returns the number of rows and the sum of a column, which must be the same for all contenders."""
    import deltalog

    rows = pa.table(deltalog.DeltaTable(table).to_arrow(columns=["i5"]))
    return {"rows": rows.num_rows, "sum": pc.sum(rows["i5"]).as_py()}
