"""Measures look-ups of single keys with and without Bloom filters: `benches/run.py lookups`.

A table has keys in random order, so the statistics of every file and row group span nearly all keys. The table is
written with filters (`deltalog.bloomFilterColumns`) and without. Then keys are looked up, and half of them exist.

- The script measures the seconds for writing, the size of the files, the seconds for a look-up, and the bytes that a
  look-up reads. These are the bytes that the process has requested from the operating system (`rchar` of
  `/proc/self/io`).
- deltalog looks keys up in both tables, and `deltalake` in the table without filters. A plain scan of the key column
  shows the cost of a look-up that skips nothing.
- All readers must find the same numbers of rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute
from deltalake import DeltaTable as OtherTable
from rich.console import Console
from rich.table import Table

from deltalog import DeltaTable, write_deltalake

KEYS = ("number", "text")
FILTERS = {"deltalog.bloomFilterColumns": "number, text"}


@dataclass(frozen=True)
class Reader:
    """A way to find the rows with a key."""

    name: str
    find: Callable[[str, int], int]
    """Returns the number of rows in which a column, the first argument, has a key, the second one."""


@dataclass(frozen=True)
class Layout:
    """A table, and the time that it took to write it."""

    path: str
    seconds: float
    size: int


def main(options: Sequence[str]) -> int:
    """Runs the measurements. Returns exit code 1 if two readers find different rows."""
    parser = argparse.ArgumentParser(
        prog="benches/run.py lookups", description="Measures point look-ups with and without Bloom filters."
    )
    parser.add_argument(
        "--rows", type=int, default=8_000_000, help="rows of the table (default: %(default)s)"
    )
    parser.add_argument("--files", type=int, default=16, help="files of the table (default: %(default)s)")
    parser.add_argument("--lookups", type=int, default=20, help="keys of each column (default: %(default)s)")
    arguments = parser.parse_args(options)
    rows, files = arguments.rows, arguments.files
    with tempfile.TemporaryDirectory() as directory:
        plain = _written(str(Path(directory) / "plain"), rows, files, {})
        filtered = _written(str(Path(directory) / "filtered"), rows, files, FILTERS)
        return _measured(plain, filtered, rows, arguments.lookups)


def _measured(plain: Layout, filtered: Layout, rows: int, lookups: int) -> int:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 140
    costs = Table("files", "seconds to write", "bytes", title=f"{rows:,} rows")
    for name, layout in (("without filters", plain), ("with filters", filtered)):
        costs.add_row(name, f"{layout.seconds:.2f}", f"{layout.size:,}")
    costs.add_row("ratio", f"{filtered.seconds / plain.seconds:.2f}", f"{filtered.size / plain.size:.3f}")
    console.print(costs)
    readers = [
        Reader("deltalog, with filters", _ours(filtered)),
        Reader("deltalog, without filters", _ours(plain)),
        Reader("deltalake, without filters", _theirs(plain)),
        Reader("deltalog, scan of the column", _scan(plain)),
    ]
    shown = Table(
        "key", "there", "reader", "milliseconds", "bytes read", title=f"{lookups} look-ups each, medians"
    )
    is_equal = True
    random = np.random.default_rng(7)
    for column in KEYS:
        for is_there in (True, False):
            keys = [int(2 * key + (not is_there)) for key in random.integers(0, rows, lookups)]
            for reader in readers:
                found, seconds, read = _timed(reader, column, keys)
                is_equal &= found == [int(is_there)] * lookups
                shown.add_row(
                    column,
                    "yes" if is_there else "no",
                    reader.name,
                    f"{1000 * median(seconds):.1f}",
                    f"{int(median(read)):,}",
                )
    console.print(shown)
    if not is_equal:
        print("the readers have found different rows", file=sys.stderr)
    return 0 if is_equal else 1


def _timed(reader: Reader, column: str, keys: Sequence[int]) -> tuple[list[int], list[float], list[int]]:
    """Measures look-ups of the keys, after looking up the first key once to warm up."""
    reader.find(column, keys[0])
    found, seconds, read = [], [], []
    for key in keys:
        begun, bytes_before = time.perf_counter(), _bytes_read()
        found.append(reader.find(column, key))
        seconds.append(time.perf_counter() - begun)
        read.append(_bytes_read() - bytes_before)
    return found, seconds, read


def _bytes_read() -> int:
    """Returns the number of bytes that the process has requested from the operating system."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def _batches(rows: int, files: int) -> Iterator[pa.Table]:
    """Yields the rows. The keys are even numbers in random order, and each number occurs once."""
    keys = np.random.default_rng(5).permutation(rows) * 2
    for part in np.array_split(keys, files):
        yield pa.table({"number": part, "text": [_text(key) for key in part], "value": part / 3})


def _text(key: int) -> str:
    return f"customer-{key:012d}"


def _written(path: str, rows: int, files: int, properties: dict[str, str]) -> Layout:
    seconds = 0.0
    for batch in _batches(rows, files):
        begun = time.perf_counter()
        write_deltalake(path, batch, mode="append", configuration=properties)
        seconds += time.perf_counter() - begun
    return Layout(path, seconds, sum(pa.table(DeltaTable(path).files())["size"].to_pylist()))


def _literal(column: str, key: int) -> str:
    return str(key) if column == "number" else f"'{_text(key)}'"


def _ours(layout: Layout) -> Callable[[str, int], int]:
    table = DeltaTable(layout.path)

    def find(column: str, key: int) -> int:
        return int(pa.table(table.to_arrow(predicate=f"{column} = {_literal(column, key)}")).num_rows)

    return find


def _scan(layout: Layout) -> Callable[[str, int], int]:
    table = DeltaTable(layout.path)

    def find(column: str, key: int) -> int:
        values = pa.table(table.to_arrow(columns=[column]))[column]
        wanted = pa.scalar(key if column == "number" else _text(key), values.type)
        return int(pa.compute.sum(pa.compute.equal(values, wanted)).as_py())

    return find


def _theirs(layout: Layout) -> Callable[[str, int], int]:
    table = OtherTable(layout.path)

    def find(column: str, key: int) -> int:
        wanted = key if column == "number" else _text(key)
        return int(table.to_pyarrow_table(filters=[(column, "=", wanted)]).num_rows)

    return find
