"""`head`, `show`, `count`, `changes`: print or count the rows of a table."""

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
    parser.add_argument("--where", metavar="SQL", help="print only rows for which this condition is true")
    parser.add_argument(
        "-c",
        "--columns",
        metavar="NAMES",
        action="append",
        help="the columns to print, such as city,km; put a name that contains a comma in backticks",
    )


def _define_show(parser: Parser, default: int | None = None) -> None:
    add_table(parser)
    _add_what(parser)
    add_version(parser)
    add_limit(parser, default, f"print at most N rows; by default {'all' if default is None else default}")


def _define_head(parser: Parser) -> None:
    _define_show(parser, 10)


def _show(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    out.rows(table.to_arrow(columns_of(arguments.columns), arguments.where), arguments.limit)


def _define_count(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument("--where", metavar="SQL", help="count only rows for which this condition is true")
    parser.add_argument("--by-partition", action="store_true", help="count the rows of each partition")
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
        help="the last version, or a time; by default the newest version",
    )
    _add_what(parser)
    add_limit(parser, None, "print at most N rows; by default all")


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


_CONDITIONS = "Conditions are written in Spark's SQL. FUNCTIONS.md lists all operators and functions."

VERBS: dict[str, Verb] = {
    "head": Verb(
        _define_head,
        _show,
        ("deltalog head trips", "deltalog head trips -n 2 --columns km"),
        "Files are read in parallel, so another run may print other rows.",
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
        f"{_CONDITIONS} Files, row groups and pages without such rows are skipped where statistics show it.",
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
        "Without a condition, or with a condition on partition columns, the log has the number, and no rows are read.",
        has_arrow=True,
    ),
    "changes": Verb(
        _define_changes,
        _changes,
        (
            "deltalog changes orders 1",
            "deltalog changes orders 1 2 --where \"_change_type = 'delete'\" --json",
        ),
        "The change data feed must have been enabled at these versions (delta.enableChangeDataFeed). In addition to "
        "the table's columns, the rows have _change_type, _commit_version and _commit_timestamp.",
        has_arrow=True,
    ),
}
