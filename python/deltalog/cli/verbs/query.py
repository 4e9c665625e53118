"""`sql`: queries over tables, by DuckDB."""

from deltalog.cli.failures import UsageError
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_limit, options_of, pair

__all__ = ["VERBS"]


def _define(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", help="a query in DuckDB's SQL")
    parser.add_argument(
        "tables",
        metavar="NAME=TABLE",
        nargs="*",
        type=pair,
        help="a name that the query uses, and the path or URL of its table",
    )
    parser.add_argument(
        "-o",
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=pair,
        help="an option of the stores of all tables; secrets are safer in the environment",
    )
    add_limit(parser, None, "at most so many rows")


def _run(arguments: Arguments, out: Output) -> None:
    from deltalog._internal import arrow_stream
    from deltalog.duckdb import sql
    from deltalog.table import DeltaTable

    options = options_of(arguments)
    tables = {name: DeltaTable(place, storage_options=options) for name, place in arguments.tables}
    if len(tables) < len(arguments.tables):
        raise UsageError("a name is given to two tables")
    out.rows(arrow_stream(sql(arguments.query, **tables)), arguments.limit)


VERBS: dict[str, Verb] = {
    "sql": Verb(
        _define,
        _run,
        (
            'deltalog sql "SELECT city, sum(km) AS km FROM trips GROUP BY city ORDER BY city" trips=trips',
            'deltalog sql "SELECT count(*) FROM t JOIN o ON t.km > o.price" t=trips o=orders --json',
        ),
        "DuckDB carries the query out (pip install 'deltalog[sql]'). It gives its filters to the scans of the tables, "
        "which skip files and pages by them. Queries cannot change tables.",
        has_arrow=True,
    ),
}
