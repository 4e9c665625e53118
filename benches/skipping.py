"""Measures the share of files that a point query skips after the rows were ordered: `benches/run.py skipping`.

It repeats the experiment of figure 5 in "Delta Lake: High-Performance ACID Table Storage over Cloud Object Stores"
(VLDB 2020), with a table of 100 files and four columns of random numbers. In the paper, rows in Z-order of all four
columns let a query skip 54 % of the files on average, and 43 % for the worst column.

- Each way to order the rows is applied to its own copy of the table. deltalog counts the files, using the statistics
  of each file.
- The shares are printed to standard output, and the picture is written to `skipping.png`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable as OtherTable
from rich.console import Console
from rich.table import Table

from benches.processes import ROOT
from deltalog import DeltaTable, write_deltalake

COLUMNS = ("a", "b", "c", "d")
VALUES = 1_000_000
FILES = 100
POINTS = 200
PAPER = (0.54, 0.43)
"""The shares in the paper: the mean over the columns, and the minimum."""
TARGET = (0.6, 0.5)
"""The required mean over the columns, and the required minimum."""


@dataclass(frozen=True)
class Layout:
    """A way to order rows, and the share of files that a filter on each column skips with this order."""

    name: str
    files: int
    shares: tuple[float, ...]


def main(options: Sequence[str]) -> int:
    """Measures the shares. Returns exit code 1 if the target is missed."""
    parser = argparse.ArgumentParser(
        prog="benches/run.py skipping", description="Measures the share of files that a point query skips."
    )
    parser.add_argument(
        "--rows", type=int, default=2_000_000, help="the rows of the table (default: %(default)s)"
    )
    parser.add_argument(
        "--picture",
        type=Path,
        default=ROOT / "benches" / "skipping.png",
        metavar="FILE",
        help="where the picture is written",
    )
    arguments = parser.parse_args(options)
    orders: dict[str, Callable[[str, int], object]] = {
        "one column": lambda table, size: DeltaTable(table).optimize.z_order("a", target_size=size),
        "deltalake, Z-order": lambda table, size: OtherTable(table).optimize.z_order(
            COLUMNS, target_size=size
        ),
        "deltalog, Z-order": lambda table, size: DeltaTable(table).optimize.z_order(
            COLUMNS, target_size=size, curve="zorder"
        ),
        "deltalog, Hilbert": lambda table, size: DeltaTable(table).optimize.z_order(
            COLUMNS, target_size=size
        ),
    }
    layouts = [_layout(name, order, arguments.rows) for name, order in orders.items()]
    console = Console(highlight=False)
    console.print(_table(layouts))
    _plot(layouts, arguments.picture)
    console.print(f"[dim]{arguments.picture}[/]", soft_wrap=True)
    best = layouts[-1].shares
    return 0 if mean(best) >= TARGET[0] and min(best) >= TARGET[1] else 1


def _layout(name: str, order: Callable[[str, int], object], rows: int) -> Layout:
    with tempfile.TemporaryDirectory() as table:
        random = np.random.default_rng(5)
        columns = {column: random.integers(0, VALUES, rows) for column in COLUMNS}
        write_deltalake(table, pa.table(columns))
        order(table, -(-_size(table) // FILES))
        opened = DeltaTable(table)
        files = len(opened.file_uris())
        shares = [
            1
            - mean(_kept(opened, f"{column} = {value}") for value in random.integers(0, VALUES, POINTS))
            / files
            for column in COLUMNS
        ]
        return Layout(name, files, tuple(shares))


def _size(table: str) -> int:
    return int(sum(pa.table(DeltaTable(table).files())["size"].to_pylist()))


def _kept(table: DeltaTable, predicate: str) -> int:
    return int(pa.table(table.files(predicate=predicate)).num_rows)


def _table(layouts: Sequence[Layout]) -> Table:
    table = Table("rows ordered by", "files", *COLUMNS, "mean", "least")
    for layout in layouts:
        shares = (*layout.shares, mean(layout.shares), min(layout.shares))
        table.add_row(layout.name, str(layout.files), *(f"{share:.1%}" for share in shares))
    table.add_row("the paper", str(FILES), *("" for _ in COLUMNS), *(f"{share:.0%}" for share in PAPER))
    return table


def _plot(layouts: Sequence[Layout], picture: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    width = 0.8 / len(layouts)
    for number, layout in enumerate(layouts):
        shares = [100 * share for share in (*layout.shares, mean(layout.shares))]
        places = [at + (number - (len(layouts) - 1) / 2) * width for at in range(len(shares))]
        axes.bar(places, shares, width, label=f"{layout.name} ({layout.files} files)", color=f"C{number}")
    axes.axhline(100 * PAPER[0], color="gray", linestyle="--", linewidth=1, label="the paper, mean")
    axes.set_xticks(range(len(COLUMNS) + 1), [*(f"{column} = …" for column in COLUMNS), "mean"])
    axes.set(ylabel="files skipped, %", ylim=(0, 100), title="files that a point query skips")
    axes.legend(frameon=False, fontsize="small", ncols=3, loc="upper center")
    figure.savefig(picture, dpi=150)
