"""Applies the rules of a table to rows, as expressions in Spark's plan of a write (`RowRules.java`).

- A generated column that the data lacks is computed; one that the data contains is compared with the computed value
  (PROTOCOL, "Generated Columns").
- Each row must meet the CHECK constraints and the invariants (PROTOCOL, "CHECK Constraints", "Column Invariants").
- A row that breaks a rule fails the job, so nothing is committed.
- The expressions may come from an untrusted table. `RuleExpression.java` checks all of them.

The checks are part of a column that is written. They are not a filter, because Spark may move a filter below a join,
where it would see rows that are not written. It never moves a projection there. Times without a time zone are in the
session's time zone, as in the JVM connector. Default values and the lengths of `char` and `varchar` are left to Spark's
own resolution of columns.
"""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from deltalog._internal import SparkWrite
from deltalog.filters import quoted
from deltalog.spark.write.fit import partition_positions
from deltalog.spark.write.refusals import REFUSAL


def missing_columns(pending: SparkWrite, given: set[str]) -> set[str]:
    """Returns the generated columns, in lower case, that data with the columns `given` leaves out."""
    return {column.lower() for column, _ in pending.generated_columns} - given


def optional(table_schema_json: str, missing: set[str]) -> str:
    """Returns the schema in which the columns to be computed may be NULL at first."""
    schema = json.loads(table_schema_json)
    for column in schema["fields"]:
        if column["name"].lower() in missing:
            column["nullable"] = True
    return json.dumps(schema)


def enforced(
    pending: SparkWrite,
    names: list[str],
    missing: set[str],
    is_written: str | None = None,
    partly: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any] | None:
    """Describes how missing columns are computed for rows with the columns `names`, and which conditions all rows must
    meet.

    If there is a condition `is_written`, columns are computed and rules are checked only for rows that meet it.
    `partly` maps names of columns to conditions: such a column is computed only for rows that meet its condition. Other
    columns are not changed. Returns None if there is nothing to compute or check.
    """
    positions = {name.lower(): position for position, name in enumerate(names)}
    generated = [(column, positions[column.lower()], sql) for column, sql in pending.generated_columns]
    checks: list[dict[str, Any]] = [
        {"rule": f"{REFUSAL}the constraint '{name}' ({sql}) is not met", "name": name, "sql": sql}
        for name, sql in pending.checks
    ]
    checks += [
        {
            "rule": f"{REFUSAL}the column '{path}' is NOT NULL, and its type void has only NULL",
            "name": path,
            "sql": sql,
        }
        for path, sql in _required_voids(_fields(pending))
    ]
    checks += [
        {
            "rule": f"{REFUSAL}the generated column '{column}' is not the value of its expression ({sql})",
            "name": column,
            "sql": sql,
            "position": position,
            "exempt": partly.get(column.lower()),
        }
        for column, position, sql in generated
        if column.lower() not in missing
    ]
    required = _required(pending)
    computed = [
        {
            "position": position,
            "name": column,
            "sql": sql,
            "when": partly.get(column.lower()),
            "refusal": f"{REFUSAL}the generated column '{column}' is NOT NULL, and its expression is NULL"
            if column in required
            else None,
        }
        for column, position, sql in generated
        if column.lower() in missing or column.lower() in partly
    ]
    if not checks and not computed:
        return None
    # Rules may read partition columns, in which empty strings are stored as NULL (PROTOCOL.md, "Partition Value
    # Serialization").
    partitions = partition_positions(pending, names)
    return {
        "table": pending.location,
        "width": len(names),
        "partitions": partitions,
        "computed": computed,
        "checks": checks,
        "isWritten": is_written,
    }


def _required(pending: SparkWrite) -> set[str]:
    return {field["name"] for field in _fields(pending) if not field["nullable"]}


def _fields(pending: SparkWrite) -> list[dict[str, Any]]:
    return list(json.loads(pending.table_schema_json or '{"fields": []}')["fields"])


def _required_voids(fields: list[dict[str, Any]], structs: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yields the void columns and fields that are NOT NULL, each with the condition that a row must meet.

    The condition is true if a struct around the field is NULL, because the row then does not have the field.

    Spark removes its own check of these columns, because files do not contain them. It would also remove a condition on
    the columns themselves.
    """
    for field in fields:
        path = (*structs, field["name"])
        if field["type"] == "void" and not field["nullable"]:
            outer = [f"{'.'.join(map(quoted, structs[: end + 1]))} IS NULL" for end in range(len(structs))]
            yield ".".join(path), " OR ".join(outer) or "false"
        elif isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _required_voids(field["type"]["fields"], path)
