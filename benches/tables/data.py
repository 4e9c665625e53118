"""A table with data: one commit with Parquet files (eight by default) of 16 columns: six longs, six doubles and four
strings.

A second commit may delete rows. The directory is a Delta table and, for readers that skip names with an
underscore, a directory of Parquet files, so every contender reads the same bytes. No predicate on the random columns
skips a file, so every scan reads all files. If a table has deletions, its data files are links to the files of the
table without deletions.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benches.tables import vectors
from benches.tables.actions import CREATED_MS, WIDE, add, commit_info, lines, metadata, protocol
from benches.tables.cache import build

FILES = 8


@dataclass(frozen=True)
class Data:
    """`rows` rows in `files` files of the same size.

    Version 1, if the table has it, deletes random rows of every file with deletion vectors.
    """

    rows: int
    deleted_percent: int = 0
    files: int = FILES

    @property
    def name(self) -> str:
        deleted = f"-{self.deleted_percent}-percent-deleted" if self.deleted_percent else ""
        return f"data-{self.rows}x16" + deleted + (f"-{self.files}-files" if self.files != FILES else "")

    def parameters(self) -> dict[str, Any]:
        return {
            name: value for name, value in asdict(self).items() if value and (name, value) != ("files", FILES)
        }

    def write(self, table: Path) -> None:
        whole = build(table.parent, Data(self.rows, files=self.files)) if self.deleted_percent else None
        adds = []
        for number in range(self.files):
            path = table / f"part-{number:05}.snappy.parquet"
            if whole:
                os.link(whole / path.name, path)
            else:
                pq.write_table(_rows(number, self.rows // self.files), path, compression="snappy")
            adds.append(add(path, _statistics(pq.read_metadata(path))))
        log = table / "_delta_log"
        log.mkdir()
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        new = (
            {"minReaderVersion": 3, "minWriterVersion": 7, **features} if self.deleted_percent else protocol()
        )
        start = ({"protocol": new}, {"metaData": metadata(list(WIDE.columns()))})
        (log / f"{0:020}.json").write_text(lines(commit_info(0), *start, *adds))
        if self.deleted_percent:
            (log / f"{1:020}.json").write_text(lines(commit_info(1), *self._deletions(table, adds)))

    def _deletions(self, table: Path, adds: list[dict[str, Any]]) -> list[dict[str, Any]]:
        random = np.random.default_rng(0)
        deleted = [
            np.flatnonzero(random.random(self.rows // self.files) * 100 < self.deleted_percent) for _ in adds
        ]
        descriptors = vectors.write(table, deleted)
        actions = []
        for action, descriptor in zip(adds, descriptors, strict=True):
            added = action["add"]
            gone = {
                "path": added["path"],
                "deletionTimestamp": CREATED_MS,
                "dataChange": True,
                "extendedFileMetadata": True,
            }
            actions.append({"remove": {**gone, "partitionValues": {}, "size": added["size"]}})
            loose = json.dumps({**json.loads(added["stats"]), "tightBounds": False}, separators=(",", ":"))
            actions.append({"add": {**added, "stats": loose, "deletionVector": descriptor}})
        return actions


def _rows(file: int, count: int) -> pa.Table:
    random = np.random.default_rng(file)
    columns: dict[str, pa.Array] = {}
    for name, type_ in WIDE.columns():
        if type_ == "long":
            columns[name] = pa.array(random.integers(0, 1_000_000, count))
        elif type_ == "double":
            columns[name] = pa.array(random.random(count))
        else:
            columns[name] = pa.array(random.integers(0, 5_000, count)).cast(pa.string())
    return pa.table(columns)


def _statistics(footer: pq.FileMetaData) -> dict[str, Any]:
    """Computes the statistics of a file from its Parquet footer (protocol: "Per-file Statistics")."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            name, of_column = column.path_in_schema, column.statistics
            low[name] = min(low.get(name, of_column.min), of_column.min)
            high[name] = max(high.get(name, of_column.max), of_column.max)
    return {
        "numRecords": footer.num_rows,
        "minValues": low,
        "maxValues": high,
        "nullCount": dict.fromkeys(low, 0),
    }
