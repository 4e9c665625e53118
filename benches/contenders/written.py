"""The rows that the contenders of `write-rows` write, and what they have written.

The source of the stream is the directory of Parquet files, read batch by batch, so that it holds only a few batches.
"""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benches.contenders.rows import COLUMN
from benches.watch import Watch

ROWS_PER_BATCH = 1 << 16


def stream(table: str) -> pa.RecordBatchReader:
    """Returns the rows of a table whose files are all live."""
    files = sorted(Path(table).glob("*.parquet"))

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            # By default pyarrow reads whole row groups ahead.
            with pq.ParquetFile(file, pre_buffer=False) as opened:
                yield from opened.iter_batches(ROWS_PER_BATCH, use_threads=False)

    return pa.RecordBatchReader.from_batches(pq.read_schema(files[0]), batches())


def written(target: str) -> dict[str, Any]:
    """Returns rows and a sum of the files that the first commit names."""
    root = Path(target)
    lines = (root / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    adds = [action["add"] for action in map(json.loads, lines) if "add" in action]
    columns = [pq.read_table(root / add["path"], columns=[COLUMN])[COLUMN] for add in adds]
    rows = sum(json.loads(add["stats"])["numRecords"] for add in adds)
    if rows != sum(map(len, columns)):
        raise ValueError(f"the statistics have {rows} rows, but the files have {sum(map(len, columns))}")
    return {"rows": rows, "sum": sum(pc.sum(column).as_py() for column in columns)}


def measure(watch: Watch, table: str, target: str, write: Callable[[str, Any], object]) -> dict[str, Any]:
    """Writes the rows as a stream, which comes first because the peak of a process never falls, and from memory."""
    with watch("stream"):
        write(target, stream(table))
    streamed = written(target)
    shutil.rmtree(target)
    held = stream(table).read_all()
    with watch("from memory"):
        write(target, held)
    del held
    gc.collect()
    of_memory = written(target)
    return {**streamed, "rows from memory": of_memory["rows"], "sum from memory": of_memory["sum"]}
