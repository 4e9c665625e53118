"""`sql`: runs a query over tables with DuckDB or DataFusion."""

from deltalog.cli.failures import UsageError
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_limit, add_pairs, options_of, pair

__all__ = ["VERBS"]


def _define(parser: Parser) -> None:
    parser.add_argument(
        "query",
        metavar="QUERY",
        help="a query in DuckDB's SQL, or in DataFusion's if DuckDB is not installed",
    )
    parser.add_argument(
        "tables",
        metavar="NAME=TABLE",
        nargs="*",
        type=pair,
        help="the name that the query uses for a table, and the path or URL of the table",
    )
    add_pairs(
        parser,
        "-o",
        "--option",
        help_text="an option of the store, for all tables; set secrets in the environment instead",
    )
    add_limit(parser, None, "print at most N rows; by default all")


def _run(arguments: Arguments, out: Output) -> None:
    from deltalog._internal import arrow_stream
    from deltalog.queries import query_over

    tables = dict(arguments.tables)
    if len(tables) < len(arguments.tables):
        raise UsageError("two tables have the same name")
    rows = query_over(arguments.query, tables, options_of(arguments))
    out.rows(arrow_stream(rows), arguments.limit)


VERBS: dict[str, Verb] = {
    "sql": Verb(
        _define,
        _run,
        (
            'deltalog sql "SELECT city, sum(km) AS km FROM trips GROUP BY city ORDER BY city" trips=trips',
            'deltalog sql "SELECT count(*) FROM t JOIN o ON t.km > o.price" t=trips o=orders --json',
        ),
        "DuckDB runs the query (pip install 'deltalog[sql]'), or DataFusion if it is installed and DuckDB is not (pip "
        "install deltalog-datafusion). Filters are passed to the scans of the tables, which then skip files and pages. "
        "A query cannot change tables.",
        has_arrow=True,
    ),
}
