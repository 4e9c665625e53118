"""Writes docs/figures.md and the table of README.md from docs/figures.json: `python -m benches.figures`.

    python -m benches.figures results/….json …   copies the medians of these results into the JSON first
    python -m benches.figures --check            fails if a page is not up to date

A row of the JSON has a case, a measure, and the figures of one run: times and, where the page shows them, peaks of
memory or the growth of the heap. New results replace the figures and the date of the rows for the same case and
measure. They must come from the machine that the JSON names, and from the largest table of the case.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benches.case import TARGET_SCALE
from benches.cases import named

__all__ = ["FIGURES", "pages", "take"]

FIGURES = Path("docs/figures.json")
PAGE, README = "docs/figures.md", "README.md"
BEGIN, END = "<!-- figures: made by benches/figures.py -->\n", "<!-- end of the figures -->\n"

NAMES = {
    "ours": "deltalog",
    "executors": "deltalog",
    "deltalake": "`deltalake`",
    "delta_kernel": "`delta_kernel`",
    "delta_kernel lean": "`delta_kernel`, without statistics",
    "datafusion": "DataFusion on the Parquet files",
    "duckdb": "DuckDB on the Parquet files",
    "polars": "Polars",
    "parquet": "Spark's own Parquet",
    "jvm": "JVM connector",
}
"""The names of the contenders on the pages. The first contender of a row is always deltalog."""

SPACE = "\N{NO-BREAK SPACE}"
Row = dict[str, Any]
_QUANTITIES = ("seconds", "peak_bytes", "heap_bytes")


def take(figures: dict[str, Any], results: dict[str, Any]) -> list[str]:
    """Copies the medians of a run into the rows, and returns the rows that were changed.

    Raises:
        ValueError: the results come from another machine or from a small table, or no row is for their case.
    """
    machine = _machine(results["machine"])
    if machine != figures["machine"]:
        raise ValueError(
            f"{machine} is another machine than {figures['machine']}, so that no rows can be compared"
        )
    [case] = named(results["case"])
    scale = TARGET_SCALE if TARGET_SCALE in case.tables else list(case.tables)[-1]
    if results["scale"] != scale:
        raise ValueError(f"the results have the scale {results['scale']}, but the figures need {scale}")
    measured = {(each["contender"], each["measure"]): each for each in results["measured"]}
    taken = []
    for row in figures["rows"]:
        if row["case"] != results["case"]:
            continue
        found = [
            measured.get((figure["of"], figure.get("measure", row["measure"]))) for figure in row["figures"]
        ]
        if None in found or any(each["failure"] for each in found if each):
            continue
        for figure, each in zip(row["figures"], found, strict=True):
            for quantity in _QUANTITIES:
                if quantity in figure and each:
                    figure[quantity] = each[quantity]["median"]
        row["date"] = results["at"][:10]
        taken.append(row["work"])
    if not taken:
        raise ValueError(f"no row is for these figures of {results['case']}")
    return taken


def _machine(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "system": facts["system"].split("-")[0],
        "cores": facts["cores"],
        "memory_gib": round(facts["memory_bytes"] / (1 << 30)),
    }


def pages(root: Path, figures: dict[str, Any]) -> dict[str, str]:
    """Returns the pages with the tables of the figures."""
    rows = figures["rows"]
    dates = [row["date"] for row in rows]
    machine = figures["machine"]
    about = (
        f"These are medians on a machine with {machine['cores']} cores and {machine['memory_gib']} GiB "
        f"({machine['system']}), measured from {min(dates)} to {max(dates)}.\n"
    )
    whole = _table(("work", "deltalog", "others", "date"), ((*_cells(row), row["date"]) for row in rows))
    short = _table(("work", "deltalog", "others"), (_cells(row) for row in rows if row.get("readme")))
    return {
        PAGE: _between(root / PAGE, f"{whole}\n{about}"),
        README: _between(root / README, short),
    }


def _between(file: Path, made: str) -> str:
    """Returns the text of a file in which the lines between the two marks are replaced."""
    before, begin, rest = file.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{file} has no place for the figures, because it lacks the line {BEGIN.strip()}")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def _table(titles: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("|  |", "| |")


def _cells(row: Row) -> tuple[str, str, str]:
    own, *others = row["figures"]
    texts = [f"{figure.get('as') or NAMES[figure['of']]}: {_figure(figure)}" for figure in others]
    return row["work"], _figure(own), "; ".join(texts)


def _figure(figure: dict[str, Any]) -> str:
    parts = [_seconds(figure["seconds"])]
    if "peak_bytes" in figure:
        parts.append(_bytes(figure["peak_bytes"]))
    if "heap_bytes" in figure:
        kept = figure["heap_bytes"]
        parts.append("no heap kept" if kept < 1 << 20 else f"{_bytes(kept)} of heap kept")
    return ", ".join(parts)


def _seconds(number: float) -> str:
    """Formats a time with two significant digits, or from ten seconds on with one digit after the point."""
    if number >= 1:
        return f"{number:.1f}{SPACE}s"
    if number >= 0.095:
        return f"{number:.2f}{SPACE}s"
    return f"{float(f'{number * 1000:.2g}'):g}{SPACE}ms"


def _bytes(number: float) -> str:
    megabytes = number < 4 << 30
    return f"{number / (1 << 20):,.0f}{SPACE}MiB" if megabytes else f"{number / (1 << 30):.1f}{SPACE}GiB"


def _written(figures: dict[str, Any]) -> str:
    """Formats the JSON with one line for each row."""
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in figures["rows"])
    return f'{{\n "machine": {json.dumps(figures["machine"])},\n "rows": [\n{rows}\n ]\n}}\n'


def main() -> None:
    root, arguments = Path.cwd(), sys.argv[1:]
    figures = json.loads((root / FIGURES).read_text("utf-8"))
    try:
        for name in arguments if arguments != ["--check"] else []:
            for work in take(figures, json.loads(Path(name).read_text("utf-8"))):
                print(f"{name}: {work}")
        made = {str(FIGURES): _written(figures), **pages(root, figures)}
    except ValueError as error:
        sys.exit(str(error))
    for name, text in made.items():
        if arguments != ["--check"]:
            (root / name).write_text(text, "utf-8")
        elif (root / name).read_text("utf-8") != text:
            sys.exit(f"{name} is not up to date: run python -m benches.figures")


if __name__ == "__main__":
    main()
