"""The command-line options that the benchmark's programs have in common."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benches.case import Case
from benches.processes import ROOT, Places


def at_least(least: int) -> Callable[[str], int]:
    """Returns a converter for integers that refuses numbers below `least`."""

    def whole_number(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"{number:,} is less than {least:,}")
        return number

    return whole_number


def add_common(parser: argparse.ArgumentParser, *, rounds: int, contenders: str) -> None:
    """Adds the common options. `rounds` is the default of `--rounds`, and `contenders` is the help text of the option
    for contenders.
    """
    parser.add_argument(
        "--rounds",
        type=at_least(1),
        default=rounds,
        help="measurements of each contender (default: %(default)s)",
    )
    parser.add_argument("--contender", action="append", default=[], metavar="NAME", help=contenders)
    parser.add_argument(
        "--timeout",
        type=float,
        default=600,
        metavar="SECONDS",
        help="time limit of one measurement (default: %(default)s)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(os.environ.get("DELTALOG_BENCH_CACHE", ROOT / ".cache" / "bench")),
        metavar="DIRECTORY",
        help="where the tables are kept (DELTALOG_BENCH_CACHE)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "benches" / "results",
        metavar="DIRECTORY",
        help="where the JSON is written",
    )
    parser.add_argument(
        "--kernel",
        type=Path,
        default=Places.kernel,
        metavar="PROGRAM",
        help="the program built from `benches/kernel`",
    )


def check_contenders(parser: argparse.ArgumentParser, wanted: Sequence[str], cases: Iterable[Case]) -> None:
    """Ends the program with an error if a contender does not occur in any of the cases."""
    known = dict.fromkeys(contender.name for case in cases for contender in case.contenders)
    for name in wanted:
        if name not in known:
            parser.error(f"there is no contender {name!r}; pass one of {', '.join(known)}")
