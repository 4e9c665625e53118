"""Two tables that streams read: one with many tiny commits, and one with a few large files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benches.tables.actions import add, commit_info, lines, metadata, protocol

TINY_ROWS = 10


@dataclass(frozen=True)
class Streamed:
    """`tiny/`, with one file of ten rows in each of `commits` commits, and `large/`, with `files` files of `rows` rows.

    A stream with one file per batch has as many batches as the table has files.
    """

    commits: int
    files: int
    rows: int

    @property
    def name(self) -> str:
        return f"streamed-{self.commits}-{self.files}x{self.rows}"

    def parameters(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, table: Path) -> None:
        tiny = [_tiny(number) for number in range(self.commits)]
        _write(table / "tiny", [("id", "long")], [[rows] for rows in tiny])
        large = [_large(number, self.rows) for number in range(self.files)]
        types = [("id", "long"), ("k", "long"), ("s", "string"), ("x", "double")]
        _write(table / "large", types, [large])


def _tiny(number: int) -> pa.Table:
    return pa.table({"id": pa.array(range(number * TINY_ROWS, (number + 1) * TINY_ROWS), pa.int64())})


def _large(number: int, rows: int) -> pa.Table:
    ids = np.arange(number * rows, (number + 1) * rows)
    texts = pa.array(ids).cast(pa.string())
    return pa.table({"id": ids, "k": ids % 1000, "s": texts, "x": np.random.default_rng(number).random(rows)})


def _write(table: Path, columns: list[tuple[str, str]], commits: list[list[pa.Table]]) -> None:
    (table / "_delta_log").mkdir(parents=True)
    first: tuple[dict[str, Any], ...] = ({"protocol": protocol()}, {"metaData": metadata(columns)})
    number = 0
    for version, files in enumerate(commits):
        adds = []
        for rows in files:
            path = table / f"part-{number:05}.snappy.parquet"
            pq.write_table(rows, path, compression="snappy")
            adds.append(add(path, {"numRecords": rows.num_rows}))
            number += 1
        text = lines(commit_info(version), *first, *adds)
        (table / "_delta_log" / f"{version:020}.json").write_text(text)
        first = ()
