"""`info`, `schema`, `files`: print the description of a table, its columns, and its files."""

import json
from typing import TYPE_CHECKING, Any

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
)
from deltalog.words import count, iso, moment, size

if TYPE_CHECKING:
    from deltalog.schema import Field

__all__ = ["VERBS"]


def _define_info(parser: Parser) -> None:
    add_table(parser)
    add_version(parser)


def _info(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    snapshot, protocol, metadata = table._snapshot, table.protocol(), table.metadata()
    files, rows, size_in_bytes = snapshot.num_files(), table.count(), snapshot.size_in_bytes()
    clustering = table.clustering_columns()
    value = {
        "location": table.table_uri,
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "version": table.version(),
        "committed": iso(snapshot.timestamp_ms),
        "created": iso(metadata.created_time),
        "files": files,
        "rows": rows,
        "size_in_bytes": size_in_bytes,
        "partition_columns": metadata.partition_columns,
        "clustering_columns": clustering,
        "reader_version": protocol.min_reader_version,
        "writer_version": protocol.min_writer_version,
        "features": snapshot.table_features,
        "properties": metadata.configuration,
    }
    pairs = [
        ("location", table.table_uri),
        ("id", metadata.id),
        ("name", metadata.name or ""),
        ("description", metadata.description or ""),
        ("version", f"{table.version()}, of {moment(snapshot.timestamp_ms)}"),
        ("created", moment(metadata.created_time)),
        ("files", f"{count(files)}, {size(size_in_bytes)}"),
        ("rows", count(rows)),
        ("partitioned by", ", ".join(metadata.partition_columns)),
        ("clustered by", ", ".join(clustering)),
        ("protocol", f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"),
        ("features", ", ".join(snapshot.table_features)),
        *sorted(metadata.configuration.items()),
    ]
    out.result(value, [(name, text) for name, text in pairs if text])


def _define_schema(parser: Parser) -> None:
    add_table(parser)
    add_version(parser)


_RULES = {
    "comment": "",
    "CURRENT_DEFAULT": "default ",
    "delta.generationExpression": "generated as ",
    "delta.identity.start": "identity from ",
}


def rules_of(field: "Field") -> str:
    """Returns the comment, the default value and the generation rules of a column as a string for people."""
    parts = [f"{words}{field.metadata[key]}" for key, words in _RULES.items() if key in field.metadata]
    return "; ".join(parts)


def _schema(arguments: Arguments, out: Output) -> None:
    schema = open_table(arguments).schema()
    if not out.is_for_people:
        out.object(json.loads(schema.to_json()))
        return
    rows = [
        [field.name, str(field.type), "" if field.nullable else "not null", rules_of(field)]
        for field in schema.fields
    ]
    names = ["column", "type", "null", "rule"]
    used = [at for at in range(len(names)) if at < 2 or any(row[at] for row in rows)]
    out.table([names[at] for at in used], ([row[at] for at in used] for row in rows), ())


def _define_files(parser: Parser) -> None:
    add_table(parser)
    add_version(parser)
    parser.add_argument(
        "--where", metavar="SQL", help="print only files that may have rows for which this condition is true"
    )
    parser.add_argument(
        "-c",
        "--columns",
        metavar="NAMES",
        action="append",
        help="what to print about each file, such as path,stats; see DeltaTable.files",
    )
    add_limit(parser, None, "print at most N files; by default all")


def _files(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    columns: list[str] | None = columns_of(arguments.columns)
    if columns is None:
        partitions = ["partition_values"] if table.metadata().partition_columns else []
        columns = ["path", "size", "num_records", *partitions, "modification_time"]
    out.rows(table.files(arguments.where, columns), arguments.limit)


VERBS: dict[str, Any] = {
    "info": Verb(_define_info, _info, ("deltalog info trips", "deltalog info trips --at 0 --json")),
    "schema": Verb(
        _define_schema,
        _schema,
        ("deltalog schema trips", "deltalog schema trips --json > schema.json"),
        "With --json, the schema has the same form as in the log, which `deltalog create --schema` reads.",
    ),
    "files": Verb(
        _define_files,
        _files,
        (
            "deltalog files trips",
            "deltalog files trips --where \"city = 'Oslo'\"",
            "deltalog files trips --columns path,stats --json",
        ),
        "With --where, files are left out because of their partition values and statistics, as a read would skip them.",
        has_arrow=True,
    ),
}
