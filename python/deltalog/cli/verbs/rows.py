"""`head`, `show`, `count`, `changes`: the rows of a table."""

from deltalog.cli.output import Output
from deltalog.cli.verb import (
    Arguments,
    Parser,
    Verb,
    add_limit,
    add_table,
    add_version,
    columns_of,
    open_table,
    version_or_time,
)
from deltalog.words import count

__all__ = ["VERBS"]


def _add_what(parser: Parser) -> None:
    parser.add_argument("--where", metavar="SQL", help="only rows for which this condition is true")
    parser.add_argument(
        "-c",
        "--columns",
        metavar="NAMES",
        action="append",
        help="the columns to print, such as city,km; names with a comma in backticks",
    )


def _define_show(parser: Parser, default: int | None = None) -> None:
    add_table(parser)
    _add_what(parser)
    add_version(parser)
    add_limit(
        parser, default, "at most so many rows" + ("" if default is None else f", {default} by default")
    )


def _define_head(parser: Parser) -> None:
    _define_show(parser, 10)


def _show(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    out.rows(table.to_arrow(columns_of(arguments.columns), arguments.where), arguments.limit)


def _define_count(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument("--where", metavar="SQL", help="only rows for which this condition is true")
    parser.add_argument("--by-partition", action="store_true", help="the rows of each partition")
    add_version(parser)


def _count(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    if arguments.by_partition:
        out.rows(table.count_by_partition(arguments.where))
        return
    number = table.count(arguments.where)
    if out.is_for_people:
        out.lines([count(number) if out.style.width else str(number)])
    else:
        out.object({"count": number})


def _define_changes(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument("start", metavar="FIRST", type=version_or_time, help="the first version, or a time")
    parser.add_argument(
        "end",
        metavar="LAST",
        type=version_or_time,
        nargs="?",
        help="the last version, or a time; the newest without it",
    )
    _add_what(parser)
    add_limit(parser, None, "at most so many rows")


def _changes(arguments: Arguments, out: Output) -> None:
    start, end = arguments.start, arguments.end
    changes = open_table(arguments).load_cdf(
        starting_version=start if isinstance(start, int) else None,
        starting_timestamp=None if isinstance(start, int) else start,
        ending_version=end if isinstance(end, int) else None,
        ending_timestamp=None if isinstance(end, int) else end,
        columns=columns_of(arguments.columns),
        predicate=arguments.where,
    )
    out.rows(changes, arguments.limit)


_CONDITIONS = "Conditions are SQL as Spark spells it: FUNCTIONS.md has all operators and functions."

VERBS: dict[str, Verb] = {
    "head": Verb(
        _define_head,
        _show,
        ("deltalog head trips", "deltalog head trips -n 2 --columns km"),
        "Files are read at the same time, so which rows are the first may differ from run to run.",
        has_arrow=True,
    ),
    "show": Verb(
        _define_show,
        _show,
        (
            "deltalog show trips --where \"city = 'Oslo' AND km > 4\"",
            "deltalog show trips --columns city,km --at 0",
            "deltalog show trips --arrow > trips.arrow",
        ),
        f"{_CONDITIONS} Files, row groups and pages that cannot have such rows are not read.",
        has_arrow=True,
    ),
    "count": Verb(
        _define_count,
        _count,
        (
            "deltalog count trips",
            'deltalog count trips --where "km > 5"',
            "deltalog count trips --by-partition",
        ),
        "The log answers where it can: without a condition, or with one on partition columns, no rows are read.",
        has_arrow=True,
    ),
    "changes": Verb(
        _define_changes,
        _changes,
        (
            "deltalog changes orders 1",
            "deltalog changes orders 1 2 --where \"_change_type = 'delete'\" --json",
        ),
        "The table must have had a change data feed (delta.enableChangeDataFeed) at these versions. Rows have the "
        "columns _change_type, _commit_version and _commit_timestamp besides the table's own.",
        has_arrow=True,
    ),
}
