"""Prints a summary of the results as two compact tables, and saves all results as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benches.case import TARGET_SCALE
from benches.rounds import Outcome
from benches.summary import Compared, Spread, Summary

_MARKS = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}


def show(console: Console, summary: Summary) -> None:
    console.print(f"\n[bold]{summary.case.name}[/]  {summary.case.about}")
    console.print(f"table {summary.table}, rounds: {summary.rounds}; median (least … most)")
    console.print(_times(summary))
    if summary.compared:
        console.print(_comparisons(summary))
    for name, failure in summary.failures.items():
        console.print(f"[red]could not be run[/]: {name}: {escape(failure)}")


def save(directory: Path, summary: Summary, outcomes: Sequence[Outcome], machine: dict[str, Any]) -> Path:
    """Saves everything as JSON, including every sample."""
    directory.mkdir(parents=True, exist_ok=True)
    now = datetime.now(timezone.utc)
    samples = {outcome.contender.name: outcome.samples for outcome in outcomes}
    path = directory / f"{now:%Y%m%dT%H%M%S}-{summary.case.name.replace('/', '-')}.json"
    path.write_text(
        json.dumps(
            {"at": now.isoformat(), "machine": machine, **summary.as_json(), "samples": samples}, indent=1
        )
        + "\n"
    )
    return path


def _times(summary: Summary) -> Table:
    with_heap = any(each.heap_bytes for each in summary.measured)
    with_cpu = any(each.cpu_seconds for each in summary.measured)
    table = _new(
        "measure",
        "who",
        "-seconds",
        *(["-processor"] if with_cpu else []),
        "-peak memory",
        *(["-heap grew by"] if with_heap else []),
    )
    for each in summary.measured:
        if each.failure:
            table.add_row(each.measure, each.contender, "not run")
        else:
            quantities = [
                (each.seconds, _seconds),
                *([(each.cpu_seconds, _seconds)] if with_cpu else []),
                (each.peak_bytes, _bytes),
                *([(each.heap_bytes, _bytes)] if with_heap else []),
            ]
            table.add_row(each.measure, each.contender, *(_text(*quantity) for quantity in quantities))
    return table


def _comparisons(summary: Summary) -> Table:
    table = _new("measure", "ratio or limit", "of", "-found", "-target", "")
    for each in summary.compared:
        # A memory ratio without a target is not useful, and the processor time of a Spark session is not measured.
        if each.at_most is None and (
            each.quantity == "memory" or (each.quantity == "processor" and each.found is None)
        ):
            continue
        show_number = {"seconds": _seconds, "peak_bytes": _bytes, "heap_bytes": _bytes}.get(
            each.quantity, _plain
        )
        target = "" if each.at_most is None else f"≤ {show_number(each.at_most)}"
        quantity = {"seconds": "time", "peak_bytes": "memory", "heap_bytes": "heap"}.get(
            each.quantity, each.quantity
        )
        table.add_row(
            each.measure,
            each.what,
            quantity,
            _text(each.found, show_number) or "not run",
            target,
            _verdict(summary, each),
        )
    return table


def _verdict(summary: Summary, each: Compared) -> str:
    """Says whether the target is met. Targets apply only to tables of full size."""
    if summary.scale != TARGET_SCALE:
        return "" if each.at_most is None else f"[dim]at {TARGET_SCALE} scale[/]"
    return _MARKS[each.reached]


def _new(*titles: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(
            title.removeprefix("-"), justify="right" if title.startswith("-") else "left", no_wrap=True
        )
    return table


def _text(spread: Spread | None, one: Any) -> str:
    return "" if spread is None else f"{one(spread.median)} ({one(spread.least)} … {one(spread.most)})"


def _plain(number: float) -> str:
    return f"{number:.3g}"


def _seconds(number: float) -> str:
    return f"{number:.2f} s" if number >= 1 else f"{number * 1e3:.3g} ms"


def _bytes(number: float) -> str:
    return f"{number / (1 << 20):.0f} MiB"
