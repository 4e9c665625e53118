"""A table with many empty data files, and additional files that no version needs. All files are old.

- The log is the same as in `Checkpointed`. For every ten files of the table there is one file that a failed write has
  left behind.
- `leave` adds such files to a copy of the log without data files, for contenders that delete them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benches.tables.actions import CREATED_MS, MONTHS, REGIONS
from benches.tables.checkpointed import Checkpointed


@dataclass(frozen=True)
class Littered:
    """A table of `files` files."""

    files: int

    @property
    def name(self) -> str:
        return f"littered-{self.files}"

    @property
    def left(self) -> int:
        """The number of files that no version needs."""
        return self.files // 10

    def parameters(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, table: Path) -> None:
        Checkpointed(self.files).write(table)
        _create(table, _paths(table / "_delta_log"))
        leave(table, self.left)


def leave(table: Path, count: int) -> None:
    """Creates files that no version needs."""
    partitions = [f"month={month}/region={region}" for month in MONTHS for region in REGIONS]
    _create(
        table, (f"{partitions[number % len(partitions)]}/left-{number}.parquet" for number in range(count))
    )


def count(paths: Iterable[str]) -> int:
    """Counts the returned files that `leave` has created. `deltalake` also returns files of tombstones, which do not
    exist.
    """
    return sum("/left-" in path for path in paths)


def _paths(log: Path) -> Iterator[str]:
    """Returns the paths of the live files."""
    lines = [
        json.loads(line) for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()
    ]
    gone = {line["remove"]["path"] for line in lines if "remove" in line}
    [checkpoint] = log.glob("*.checkpoint.parquet")
    for batch in pq.ParquetFile(checkpoint).iter_batches(columns=["add.path"]):
        for path in batch.column("add").field("path").to_pylist():
            if path is not None and path not in gone:
                yield path
    yield from (line["add"]["path"] for line in lines if "add" in line)


def _create(table: Path, paths: Iterable[str]) -> None:
    known: set[str] = set()
    written = CREATED_MS / 1_000
    for path in paths:
        # Creating a million `Path` objects takes longer than creating the files.
        directory = path.rpartition("/")[0]
        if directory not in known:
            known.add(directory)
            (table / directory).mkdir(parents=True, exist_ok=True)
        file = f"{table}/{path}"
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY))
        os.utime(file, (written, written))
