"""What the contenders of `optimize` and `z-order` do with a table, and the expected result."""

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
    """Returns the file size at which the rows fill that many files."""
    return -(-sum(path.stat().st_size for path in Path(table).glob("*.parquet")) // FILES)


def answer(table: str) -> dict[str, Any]:
    """Returns the number of rows and the sum of a column, which must equal the peers'."""
    import deltalog

    rows = pa.table(deltalog.DeltaTable(table).to_arrow(columns=["i5"]))
    return {"rows": rows.num_rows, "sum": pc.sum(rows["i5"]).as_py()}
