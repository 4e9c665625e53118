"""`create`: creates a table from its definition."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deltalog.cli.columns import fields_of
from deltalog.cli.failures import UsageError
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_pairs, add_table, columns_of, options_of

if TYPE_CHECKING:
    from deltalog.schema import Schema

__all__ = ["VERBS"]


def _define_create(parser: Parser) -> None:
    add_table(parser, "the path or URL of the new table")
    columns = parser.add_mutually_exclusive_group(required=True)
    columns.add_argument(
        "--columns",
        metavar="DEFINITIONS",
        help="the columns, such as 'id bigint not null, city string, tags array<string>'",
    )
    columns.add_argument(
        "--schema",
        metavar="FILE",
        help="a file with the schema, as `deltalog schema --json` prints it; - is standard input",
    )
    layout = parser.add_mutually_exclusive_group()
    layout.add_argument(
        "--partition-by", metavar="NAMES", action="append", help="the partition columns, such as day"
    )
    layout.add_argument(
        "--cluster-by", metavar="NAMES", action="append", help="the clustering columns, at most four"
    )
    add_pairs(parser, "--property", help_text="a property of the table")
    add_pairs(
        parser,
        "--constraint",
        metavar="NAME=SQL",
        help_text="a CHECK constraint, such as 'positive=price > 0'",
    )
    parser.add_argument("--name", metavar="NAME", help="the name of the table")
    parser.add_argument("--description", metavar="TEXT", help="the description of the table")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--if-not-exists", action="store_true", help="do nothing if there is already a table")
    modes.add_argument(
        "--replace", action="store_true", help="if there is already a table, replace it and its rows"
    )


def _schema_of(arguments: Arguments) -> "Schema":
    from deltalog.schema import Schema

    if arguments.columns is not None:
        return Schema(fields_of(arguments.columns))
    if arguments.schema == "-":
        return Schema.from_json(sys.stdin.read())
    try:
        return Schema.from_json(Path(arguments.schema).read_text("utf-8"))
    except UnicodeDecodeError:
        raise UsageError(f"the file {arguments.schema} is not text") from None


def _create(arguments: Arguments, out: Output) -> None:
    from deltalog.table import DeltaTable

    table = DeltaTable.create(
        arguments.table,
        _schema_of(arguments),
        mode="overwrite" if arguments.replace else "ignore" if arguments.if_not_exists else "error",
        partition_by=columns_of(arguments.partition_by),
        cluster_by=columns_of(arguments.cluster_by),
        name=arguments.name,
        description=arguments.description,
        configuration=dict(arguments.property),
        constraints=dict(arguments.constraint),
        storage_options=options_of(arguments),
    )
    out.result(
        {"location": table.table_uri, "version": table.version()},
        [("table", table.table_uri), ("version", str(table.version()))],
    )


VERBS: dict[str, Verb] = {
    "create": Verb(
        _define_create,
        _create,
        (
            "deltalog create rides --columns 'city string, km double not null' --partition-by city",
            "deltalog create prices --columns 'id bigint, price decimal(10, 2)' --constraint 'positive=price > 0'",
            "deltalog schema trips --json | deltalog create copy --schema -",
        ),
        "A type is written as in SQL or as in the log: bigint or long, int or integer, string, double, decimal(p, s), "
        "boolean, date, timestamp, timestamp_ntz, binary, array<t>, map<k, v>, struct<a: t, …>, variant. Put a name in "
        "backticks if it contains characters other than letters, digits and _.",
    ),
}
