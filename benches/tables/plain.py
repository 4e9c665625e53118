"""A directory of Parquet files that is not a Delta table. Its tiny files are all copies of one file, in a hundred
partitions.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PARTITIONS = 100
ROWS = 10


@dataclass(frozen=True)
class Plain:
    """A directory of `files` files, partitioned by the integer `part`."""

    files: int

    @property
    def name(self) -> str:
        return f"plain-{self.files}"

    def parameters(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, table: Path) -> None:
        columns = {f"c{number}": pa.array(range(number, number + ROWS)) for number in range(4)}
        texts = {f"s{number}": [f"text {row}" for row in range(ROWS)] for number in range(4)}
        first = table / "part=0" / "0.parquet"
        first.parent.mkdir()
        pq.write_table(pa.table({**columns, **texts}), first)
        for number in range(1, self.files):
            file = table / f"part={number % PARTITIONS}" / f"{number}.parquet"
            if number < PARTITIONS:
                file.parent.mkdir()
            shutil.copyfile(first, file)
