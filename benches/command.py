"""The command line: it selects the cases, the scale of the tables and the number of rounds.

The exit code is 1 if a contender could not be run. Missing a target is not an error.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benches import machine, report
from benches.case import SCALES, TARGET_SCALE, Case
from benches.cases import CASES, named
from benches.options import add_common, check_contenders
from benches.processes import Places
from benches.rounds import Settings, run
from benches.summary import summarise

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 140  # A log file, unlike a terminal, has no width.


def main(options: Sequence[str]) -> int:
    parser = _parser()
    arguments = parser.parse_args(options)
    if arguments.cases == ["list"]:
        _list()
        return 0
    chosen: dict[str, Case] = {}
    for wanted in arguments.cases:
        found = named(wanted)
        if not found:
            parser.error(f"there is no case {wanted!r}; `list` shows all cases")
        chosen |= {case.name: case for case in found}
    check_contenders(parser, arguments.contender, chosen.values())
    settings = Settings(
        scale=arguments.scale,
        rounds=arguments.rounds,
        cache=arguments.cache.resolve(),
        seconds=arguments.timeout,
        contenders=arguments.contender,
        places=Places(jvm_python=arguments.jvm_python, jars=arguments.jars, kernel=arguments.kernel),
    )
    failed = [case.name for case in chosen.values() if not _run(case, settings, arguments.results)]
    if failed:
        console.print(f"\n[red]not complete[/]: {', '.join(failed)}")
    return 1 if failed else 0


def _run(case: Case, settings: Settings, results: Path) -> bool:
    """Runs a case; returns False if a contender could not be run."""
    facts = machine.facts()
    with console.status(case.name) as status:
        outcomes = run(case, settings, status.update)
    summary = summarise(case, settings.scale, settings.rounds, outcomes)
    report.show(console, summary)
    console.print(f"[dim]{report.save(results, summary, outcomes, facts)}[/]", soft_wrap=True)
    return not summary.failures


def _list() -> None:
    for case in CASES:
        tables = ", ".join(spec.name for spec in case.tables.values())
        names = ", ".join(contender.name for contender in case.contenders)
        console.print(
            f"[bold]{case.name}[/]  {case.about}\n  [dim]{names}; tables {tables}[/]", soft_wrap=True
        )


def _parser() -> argparse.ArgumentParser:
    places = Places()
    parser = argparse.ArgumentParser(
        prog="benches/run.py",
        description="Measures deltalog and comparable libraries in one run, on the same tables.",
    )
    parser.add_argument(
        "cases", nargs="*", default=["all"], help="names of cases, `all` (the default), or `list`"
    )
    parser.add_argument(
        "--scale", choices=SCALES, default=TARGET_SCALE, help="the size of the tables (default: %(default)s)"
    )
    add_common(parser, rounds=5, contenders="only this contender; may be repeated")
    parser.add_argument(
        "--jvm-python",
        type=Path,
        default=places.jvm_python,
        help="a Python that has the PySpark of the JVM connector",
    )
    parser.add_argument(
        "--jars", type=Path, default=places.jars, metavar="DIRECTORY", help="the jars of the JVM connector"
    )
    return parser
