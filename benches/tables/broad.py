"""Two tables that differ in their number of columns. All columns are longs with statistics.

Each table has one file of four rows. If an operation takes ten times as long for ten times as many columns, it is
linear.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benches.tables.actions import add, commit_info, lines, metadata, protocol

FACTOR = 10
ROWS = 4


def rows(columns: int) -> pa.Table:
    """Returns the rows of the file."""
    return pa.table({f"c{number}": pa.array(range(ROWS), pa.int64()) for number in range(columns)})


@dataclass(frozen=True)
class Broad:
    """`narrow/`, a table of `columns` columns, and `broad/`, one of ten times as many."""

    columns: int

    @property
    def name(self) -> str:
        return f"broad-{self.columns}"

    def parameters(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, table: Path) -> None:
        _write(table / "narrow", self.columns)
        _write(table / "broad", self.columns * FACTOR)


def _write(table: Path, columns: int) -> None:
    (table / "_delta_log").mkdir(parents=True)
    path = table / "part-00000.snappy.parquet"
    pq.write_table(rows(columns), path, compression="snappy")
    names = [f"c{number}" for number in range(columns)]
    table_metadata = metadata([(name, "long") for name in names])
    table_metadata["configuration"] = {"delta.dataSkippingNumIndexedCols": "-1"}
    stats = {
        "numRecords": ROWS,
        "minValues": dict.fromkeys(names, 0),
        "maxValues": dict.fromkeys(names, ROWS - 1),
        "nullCount": dict.fromkeys(names, 0),
    }
    first = ({"protocol": protocol()}, {"metaData": table_metadata})
    (table / "_delta_log" / f"{0:020}.json").write_text(lines(commit_info(0), *first, add(path, stats)))
