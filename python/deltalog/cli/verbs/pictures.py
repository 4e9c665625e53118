"""`plot`: sizes of files, overlap of files, growth and commits, in the terminal or as a picture."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalog.cli.failures import UsageError
from deltalog.cli.files import written
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_limit, add_table, add_version, open_table
from deltalog.escape import visible

if TYPE_CHECKING:
    from deltalog.plot.picture import Picture
    from deltalog.table import DeltaTable

__all__ = ["VERBS"]

_FORMATS = {".png": "png", ".svg": "svg"}
_BARS = 16
"""The maximum number of bars in plots of overlap and of commits in a terminal."""
_PARTS = 200
"""The number of parts of the axis in a picture of an overlap."""
_PERIODS = 40
"""The maximum number of periods in a picture of commits."""


def _define(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="?",
        choices=("files", "overlap", "growth", "commits"),
        default="files",
        help="files (the default), overlap, growth or commits",
    )
    parser.add_argument("column", metavar="COLUMN", nargs="?", help="the column of an overlap")
    add_version(parser)
    add_limit(parser, None, "growth and commits: plot only the last N versions")
    parser.add_argument(
        "--save", metavar="FILE", help="write a picture to FILE, whose name must end with .png or .svg"
    )
    parser.add_argument("--replace", action="store_true", help="replace a file that exists")
    parser.add_argument("--dark", action="store_true", help="draw the picture on a dark background")


def _run(arguments: Arguments, out: Output) -> None:
    if (arguments.what == "overlap") != (arguments.column is not None):
        raise UsageError("only overlap takes a column, and it needs one: deltalog plot trips overlap km")
    if arguments.save is None and (arguments.dark or arguments.replace):
        raise UsageError("--dark and --replace can only be used with --save")
    form = None if arguments.save is None else _FORMATS.get(Path(arguments.save).suffix.lower())
    if arguments.save is not None and (form is None or not out.is_for_people):
        raise UsageError(
            "--save needs a file whose name ends with .png or .svg, and cannot be used with --json"
        )
    picture, values = _plotted(open_table(arguments), arguments, is_text=form is None)
    if form is not None:
        _save(picture, arguments, form)
        out.lines([f"{visible(arguments.save)} is written"])
    elif out.is_for_people:
        from deltalog.cli.plots import text_lines

        out.lines(text_lines(picture, out.style))
    else:
        for value in values:
            out.object(value)


def _plotted(
    table: "DeltaTable", arguments: Arguments, *, is_text: bool
) -> tuple["Picture", Iterable[Mapping[str, Any]]]:
    """Returns a plot, and its numbers for `--json`."""
    from deltalog.plot import name_of, pictures
    from deltalog.plot.numbers.commits import commits_of
    from deltalog.plot.numbers.files import file_sizes
    from deltalog.plot.numbers.growth import growth_of
    from deltalog.plot.numbers.overlap import overlap_of

    name = name_of(table)
    if arguments.what == "overlap":
        overlap = overlap_of(table, arguments.column)
        return pictures.overlap_picture(overlap, name, _BARS if is_text else _PARTS), [
            {
                "column": overlap.column,
                "files": overlap.files,
                "files_without_bounds": overlap.unknown,
                "files_without_values": overlap.empty,
                "mean_files_read": overlap.mean,
                "most_files_read": overlap.most,
            }
        ]
    if arguments.what == "growth":
        growth = growth_of(table, arguments.limit)
        return pictures.growth_picture(growth, name), (each._asdict() for each in growth)
    if arguments.what == "commits":
        commits = commits_of(table, arguments.limit, _BARS if is_text else _PERIODS)
        return pictures.commits_picture(commits, name), (each._asdict() for each in commits.periods)
    sizes = file_sizes(table)
    return pictures.files_picture(sizes, name), [
        {
            **sizes._asdict(),
            "ranges": [each._asdict() for each in sizes.ranges],
            "partitions": [each._asdict() for each in sizes.partitions],
        }
    ]


def _save(picture: "Picture", arguments: Arguments, form: str) -> None:
    import warnings

    from deltalog.extras import required
    from deltalog.plot.figure import INSTALL, figure_of

    styles: Any = required("matplotlib.style", "deltalog plot --save", INSTALL)
    with ExitStack() as stack:
        if arguments.dark:
            stack.enter_context(styles.context("dark_background"))
        # matplotlib warns about characters that no installed font has, and draws boxes for them.
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = figure_of(picture)
        file = stack.enter_context(written(arguments.save, replaces=arguments.replace))
        figure.savefig(file, format=form, dpi=150)


VERBS: dict[str, Verb] = {
    "plot": Verb(
        _define,
        _run,
        (
            "deltalog plot trips",
            "deltalog plot trips overlap km",
            "deltalog plot trips growth --json",
            "deltalog plot trips commits -n 100 --save commits.svg",
        ),
        "files: the sizes of files, and the bytes of partitions. overlap COLUMN: how many files a filter on one value "
        "reads. growth: rows, files and bytes of each version, and the commits in the log. commits: commits over time, "
        "by operation, and how many were overtaken by other writers. All numbers come from the log.\n\n"
        "With --save, matplotlib draws the picture (pip install 'deltalog[plot]').",
    ),
}
