"""Reads the rows that the contenders of `write-rows` and `write-partitions` write, and checks the tables that they
wrote.

A stream reads a directory of Parquet files batch by batch, so only a few batches are in memory.
"""

from __future__ import annotations

import gc
import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benches.contenders.rows import COLUMN
from benches.watch import Watch

ROWS_PER_BATCH = 1 << 16


def stream(table: str) -> pa.RecordBatchReader:
    """Streams the rows of a table by reading its directory, which must not contain outdated files."""
    files = sorted(Path(table).glob("*.parquet"))

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            # By default pyarrow reads whole row groups ahead.
            with pq.ParquetFile(file, pre_buffer=False) as opened:
                yield from opened.iter_batches(ROWS_PER_BATCH, use_threads=False)

    return pa.RecordBatchReader.from_batches(pq.read_schema(files[0]), batches())


PARTITION_COLUMN = "i0"
"""A column of random numbers. The partition of a row is this number modulo the number of partitions."""


def partitioned(table: str, partitions: int) -> pa.RecordBatchReader:
    """Returns the rows with the values of `PARTITION_COLUMN` replaced: it has `partitions` different values, in random
    order.
    """
    source = stream(table)
    place = source.schema.get_field_index(PARTITION_COLUMN)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source:
            values = pa.array(batch.column(place).to_numpy() % partitions)
            yield batch.set_column(place, source.schema.field(place), values)

    return pa.RecordBatchReader.from_batches(source.schema, batches())


def measure_partitioned(
    watch: Watch, table: str, target: str, partitions: int, write: Callable[..., object]
) -> dict[str, Any]:
    """Writes the rows as a stream, and records the time and the number of files."""
    with watch("partitions"):
        write(target, partitioned(table, partitions), partition_by=[PARTITION_COLUMN])
    found = _adds(target)
    watch.note("partitions", "files", len(found))
    values = {add["partitionValues"][PARTITION_COLUMN] for add in found}
    return {**written(target), "partitions": len(values)}


def _adds(target: str) -> list[dict[str, Any]]:
    lines = (Path(target) / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def _column(path: Path) -> pa.ChunkedArray:
    # `read_table` is not used, because it would look for partition values in the names of directories.
    with pq.ParquetFile(path) as file:
        return file.read([COLUMN])[COLUMN]


def written(target: str) -> dict[str, Any]:
    """Returns the number of rows and a sum over the files that the first commit adds."""
    adds = _adds(target)
    columns = [_column(Path(target) / unquote(add["path"])) for add in adds]
    rows = sum(json.loads(add["stats"])["numRecords"] for add in adds)
    if rows != sum(map(len, columns)):
        raise ValueError(f"the statistics have {rows} rows, but the files have {sum(map(len, columns))}")
    # The sum does not depend on the order of the files.
    return {"rows": rows, "sum": math.fsum(pc.sum(column).as_py() for column in columns)}


def measure(watch: Watch, table: str, target: str, write: Callable[[str, Any], object]) -> dict[str, Any]:
    """Writes the rows as a stream, and then from memory. The stream comes first, because the peak memory of a process
    never falls.
    """
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
