"""Measures how time and memory grow with a table's number of files: `benches/run.py curve`.

It uses the tables, processes and clocks of the cases.

- Tables of 10,000, 100,000 and 1,000,000 files. `--largest 10000000` adds one that takes 3 GB of disk and
  minutes to make.
- There are two curves: one for opening a table and listing all files, and one for opening it and listing the files
  that a predicate selects (one file in 2,400).
- The numbers go to standard output and, with every sample, to `results/`; the picture goes to `curve.png`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benches import machine
from benches.case import TARGET_SCALE
from benches.cases import named
from benches.options import add_common, at_least, check_contenders
from benches.processes import ROOT, Places
from benches.rounds import Outcome, Settings, run
from benches.summary import Spread
from benches.tables import Checkpointed

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
LINES = (("open-list", "open + list"), ("plan", "plan"))
CONTENDERS = ("ours", "delta_kernel")


@dataclass(frozen=True)
class Point:
    """The median and the range of a lap for tables of one size."""

    case: str
    contender: str
    files: int
    seconds: Spread
    peak_bytes: Spread
    samples: list[dict[str, Any]]


def main(options: Sequence[str]) -> int:
    """Measures and draws the curves. Returns exit code 1 if a contender could not be run."""
    parser = _parser()
    arguments = parser.parse_args(options)
    check_contenders(parser, arguments.contender, (named(name)[0] for name, _ in LINES))
    console = Console(highlight=False)
    settings = Settings(
        scale=TARGET_SCALE,
        rounds=arguments.rounds,
        cache=arguments.cache.resolve(),
        seconds=arguments.timeout,
        contenders=arguments.contender or CONTENDERS,
        places=Places(kernel=arguments.kernel),
    )
    facts, failures, points = machine.facts(), dict[str, str](), list[Point]()
    for files in (size for size in SIZES if size <= arguments.largest):
        for name, measure in LINES:
            with console.status(name) as status:
                case = replace(named(name)[0], tables={TARGET_SCALE: Checkpointed(files)})
                outcomes = run(case, settings, status.update)
            points += _points(name, measure, files, outcomes)
            failures |= {
                f"{outcome.contender.name}, {name}, {files:,} files": outcome.failure
                for outcome in outcomes
                if outcome.failure
            }
    console.print(_table(points))
    console.print(f"[dim]{_save(points, facts, arguments.results)}[/]", soft_wrap=True)
    if points:
        _plot(points, arguments.picture)
        console.print(f"[dim]{arguments.picture}[/]", soft_wrap=True)
    for what, why in failures.items():
        console.print(f"[red]could not be run[/]: {what}: {escape(why)}")
    return 1 if failures else 0


def _points(name: str, measure: str, files: int, outcomes: Sequence[Outcome]) -> Iterator[Point]:
    for outcome in outcomes:
        seconds, peak = (
            Spread.of(outcome.series(measure, "seconds")),
            Spread.of(outcome.series(measure, "peak_bytes")),
        )
        if seconds and peak:
            yield Point(name, outcome.contender.name, files, seconds, peak, outcome.samples)


def _table(points: Sequence[Point]) -> Table:
    table = Table("case", "who", "files", "seconds", "a file", "peak memory")
    for point in sorted(points, key=lambda point: (point.case, point.contender, point.files)):
        seconds = point.seconds.median
        each, peak = f"{seconds / point.files * 1e6:.2f} µs", f"{point.peak_bytes.median / (1 << 20):.0f} MiB"
        table.add_row(point.case, point.contender, f"{point.files:,}", f"{seconds:.3g} s", each, peak)
    return table


def _save(points: Sequence[Point], facts: dict[str, Any], directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    now = datetime.now(timezone.utc)
    path = directory / f"{now:%Y%m%dT%H%M%S}-curve.json"
    shown = [
        {**vars(point), "seconds": vars(point.seconds), "peak_bytes": vars(point.peak_bytes)}
        for point in points
    ]
    path.write_text(json.dumps({"at": now.isoformat(), "machine": facts, "points": shown}, indent=1) + "\n")
    return path


def _plot(points: Sequence[Point], picture: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    colours = {
        who: f"C{number}" for number, who in enumerate(dict.fromkeys(point.contender for point in points))
    }
    for who, case in dict.fromkeys((point.contender, point.case) for point in points):
        own = [point for point in points if (point.contender, point.case) == (who, case)]
        files = [point.files for point in own]
        style = {
            "linestyle": "-" if case == "open-list" else "--",
            "marker": "o",
            "color": colours[who],
            "label": f"{who}, {case}",
        }
        time.plot(files, [point.seconds.median for point in own], **style)
        memory.plot(files, [point.peak_bytes.median / (1 << 20) for point in own], **style)
    for axes, title in ((time, "seconds"), (memory, "peak memory, MiB")):
        axes.set(xscale="log", yscale="log", xlabel="files", title=title)
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(frameon=False, fontsize="small")
    figure.savefig(picture, dpi=150)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benches/run.py curve", description="Measures how time and memory grow with the number of files."
    )
    parser.add_argument(
        "--largest",
        type=at_least(SIZES[0]),
        default=1_000_000,
        metavar="FILES",
        help="the largest number of files (default: %(default)s)",
    )
    add_common(parser, rounds=3, contenders=f"instead of {' and '.join(CONTENDERS)}; may be repeated")
    parser.add_argument(
        "--picture",
        type=Path,
        default=ROOT / "benches" / "curve.png",
        metavar="FILE",
        help="where the picture is written",
    )
    return parser
