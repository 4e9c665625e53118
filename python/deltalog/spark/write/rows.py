"""Describes how the rows of a write are converted before they are written to the table's files.

One JSON string describes all requirements of the table, and `FileRows.java` builds projections in Spark's plan from it.
So no row passes through Python, nothing is read twice, and the number of messages to the JVM does not depend on the
number of columns. The parts of the description come from the modules `fit`, `identity`, `rules` and `balance`. Columns
are identified by their positions in the table.
"""

from typing import Any, NamedTuple

from deltalog._internal import SparkWrite
from deltalog.spark import schema
from deltalog.spark.write import fit, rules
from deltalog.spark.write.balance import balance
from deltalog.spark.write.identity import counted_columns, numbers
from deltalog.spark.write.request import WriteRequest


class FileRows(NamedTuple):
    """Describes how rows are converted to the form of files."""

    parts: dict[str, Any]
    """The description for `FileRows.java`; empty for rows that can be written unchanged."""
    partition_columns: list[str]
    """The columns by which Spark partitions the converted rows."""


def file_rows(request: WriteRequest, pending: SparkWrite) -> FileRows:
    """Describes how the rows of a write are converted to the form of files."""
    names = request.names
    parts: dict[str, Any] = {}
    missing: set[str] = set()
    if pending.table_schema_json is not None:
        given = request.given if pending.computes_columns else set()
        missing = rules.missing_columns(pending, given)
        counted = counted_columns(pending, given)
        computed = missing | counted.keys()
        parts["fit"] = fit.to_table(request, rules.optional(pending.table_schema_json, computed), computed)
        names = schema.field_names(pending.table_schema_json)
        parts["numbers"] = numbers(counted, names)
    fit.check_partitions(pending, names)
    # This is also needed for a new table, which has no constraints yet: with replaceWhere, the new rows must meet its
    # condition.
    parts["rules"] = rules.enforced(pending, names, missing)
    parts["files"] = fit.file_columns(pending, names)
    parts["balance"] = balance(request.options, request.settings, pending)
    return described(pending, parts)


def described(pending: SparkWrite, parts: dict[str, Any]) -> FileRows:
    """Returns the description that consists of these parts. Empty parts are left out."""
    parts = {name: part for name, part in parts.items() if part}
    columns = fit.text_columns(pending)
    if balanced := parts.get("balance"):
        # Identity columns get their values after the shuffle, and partition values become text after that. So if there
        # are identity columns, the shuffle uses the partition columns of the table instead of the text columns.
        parts["balance"] = {
            **balanced,
            "columns": pending.partition_columns if "numbers" in parts else columns,
        }
    return FileRows(parts, columns)
