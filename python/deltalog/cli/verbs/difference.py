"""`diff`: prints the differences between two versions of a table."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deltalog.arrow_objects import objects
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_table, open_table, version_or_time
from deltalog.escape import visible
from deltalog.words import counted, moment, size

if TYPE_CHECKING:
    from deltalog.schema import Schema
    from deltalog.table import DeltaTable

__all__ = ["VERBS"]


def _define_diff(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument("before", metavar="A", type=version_or_time, help="a version, or a time")
    parser.add_argument(
        "after",
        metavar="B",
        type=version_or_time,
        nargs="?",
        help="another version, or a time; by default the newest version",
    )
    parser.add_argument("--files", action="store_true", help="print the names of the files that differ")


class _File:
    """The properties of a file that are compared."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        vector = row["deletion_vector"]
        self.size = row["size"]
        deleted = 0 if vector is None else vector["cardinality"]
        records = row["num_records"]
        self.rows = None if records is None or deleted is None else records - deleted
        self.state = None if vector is None else json.dumps(vector, sort_keys=True)


def _files_of(table: "DeltaTable") -> dict[str, _File]:
    columns = ["path", "size", "num_records", "deletion_vector"]
    return {row["path"]: _File(row) for row in objects(table.files(columns=columns))}


def _total(files: list[_File]) -> tuple[int | None, int]:
    """Returns the number of rows in files, or None if it is unknown for one of the files, and the files' size in
    bytes.
    """
    rows = [file.rows for file in files]
    known = [number for number in rows if number is not None]
    return sum(known) if len(known) == len(rows) else None, sum(file.size or 0 for file in files)


def _columns_of(schema: "Schema") -> dict[str, str]:
    return {
        field.name: f"{field.type}{'' if field.nullable else ' not null'}"
        + (f" {json.dumps(field.metadata, ensure_ascii=False, sort_keys=True)}" if field.metadata else "")
        for field in schema.fields
    }


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Returns the entries that differ, each with the old and the new value."""
    names = [*after, *(name for name in before if name not in after)]
    return {
        name: [before.get(name), after.get(name)] for name in names if before.get(name) != after.get(name)
    }


def _about(table: "DeltaTable") -> dict[str, str]:
    """Returns the facts about a version that are compared in addition to its columns, files and properties."""
    protocol, metadata = table.protocol(), table.metadata()
    about = {
        "name": metadata.name,
        "description": metadata.description,
        "id": metadata.id,
        "partitioned by": ", ".join(metadata.partition_columns),
        "clustered by": ", ".join(table.clustering_columns()),
        "reader version": str(protocol.min_reader_version),
        "writer version": str(protocol.min_writer_version),
        "features": ", ".join(table._snapshot.table_features),
    }
    return {name: value for name, value in about.items() if value}


def _diff(arguments: Arguments, out: Output) -> None:
    before = open_table(arguments, arguments.before)
    after = open_table(arguments, arguments.after)
    old, new = _files_of(before), _files_of(after)
    added = {path: file for path, file in new.items() if path not in old}
    removed = {path: file for path, file in old.items() if path not in new}
    changed = {path: file for path, file in new.items() if path in old and old[path].state != file.state}
    rows = _total(list(old.values()))[0], _total(list(new.values()))[0]
    value: dict[str, Any] = {
        "versions": [before.version(), after.version()],
        "rows": list(rows),
        "files": [len(old), len(new)],
        "size_in_bytes": [_total(list(old.values()))[1], _total(list(new.values()))[1]],
        "files_added": len(added),
        "files_removed": len(removed),
        "files_with_other_deletion_vectors": len(changed),
        "columns": _changed(_columns_of(before.schema()), _columns_of(after.schema())),
        "properties": _changed(before.metadata().configuration, after.metadata().configuration),
        "table": _changed(_about(before), _about(after)),
    }
    if arguments.files:
        value |= {"added": sorted(added), "removed": sorted(removed), "changed": sorted(changed)}
    if not out.is_for_people:
        out.object(value)
        return
    times = [moment(table._snapshot.timestamp_ms) for table in (before, after)]
    out.lines(
        [out.style.bold(f"version {before.version()}, of {times[0]}, and {after.version()}, of {times[1]}")]
    )
    out.lines(_lines(value, added, removed, changed))


def _lines(
    value: Mapping[str, Any],
    added: Mapping[str, _File],
    removed: Mapping[str, _File],
    changed: Mapping[str, _File],
) -> Iterator[str]:
    """Yields the lines that describe the differences, for people."""
    before, after = value["rows"]
    if before is None or after is None:
        yield "rows: unknown, because a file has no statistics"
    else:
        yield f"rows: {before:,} and {after:,} ({after - before:+,})"
    for sign, words, files in (("+", "added", added), ("-", "removed", removed)):
        rows, in_bytes = _total(list(files.values()))
        if files:
            said = "" if rows is None else f", {counted(rows, 'row')}"
            yield f"{sign} {counted(len(files), 'file')} {words}{said}, {size(in_bytes)}"
    if changed:
        yield f"~ {counted(len(changed), 'file')} with another deletion vector"
    for kind, noun in (("columns", "column"), ("properties", "property"), ("table", "")):
        for name, (old, new) in value[kind].items():
            shown = f"{noun} {name}".strip()
            if old is None:
                yield visible(f"+ {shown}: {new}")
            elif new is None:
                yield visible(f"- {shown}: {old}")
            else:
                yield visible(f"~ {shown}: {old} -> {new}")
    for sign, key in (("+", "added"), ("-", "removed"), ("~", "changed")):
        for path in value.get(key, ()):
            yield visible(f"{sign} {path}")


VERBS: dict[str, Verb] = {
    "diff": Verb(
        _define_diff,
        _diff,
        ("deltalog diff trips 0 1", "deltalog diff trips 0 --files --json"),
        "The numbers of rows come from the statistics of files. With --json, each difference is a list of two values: "
        "first of A, then of B.",
    ),
}
