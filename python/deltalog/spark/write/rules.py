"""What a table demands of its rows, as expressions in Spark's plan of a write.

- A generated column that the data lacks is computed, and one that it has is compared (PROTOCOL, "Generated Columns").
- Each row must meet the CHECK constraints and the invariants (PROTOCOL, "CHECK Constraints", "Column Invariants").
- A row that breaks a rule fails the job, so nothing is committed.

The checks are part of a column that is written. Spark may move a filter below a join, where it would see rows that are
not written; it never moves a projection there. Times without a time zone are those of the session, as in the JVM
connector. Default values and the lengths of `char` and `varchar` are left to Spark's own resolution of columns.
"""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from deltalog._internal import InvalidArgumentError, SparkWrite
from deltalog.filters import quoted
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.causes import causes

_REFUSAL = "the table refuses a row: "
_MESSAGE = re.compile(re.escape(_REFUSAL) + r"(.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


def given_columns(jvm: Jvm, data: Any) -> set[str]:
    """Returns the names of the columns, in lower case, that `data` gives.

    A constant NULL counts as not given: in INSERT statements, Spark has filled the columns so that are left out.
    """
    plan = data.queryExecution().analyzed()
    given = {attribute.name().lower() for attribute in jvm.sequence(plan.output())}
    if plan.getClass().getSimpleName() == "Project":
        for expression in jvm.sequence(plan.projectList()):
            if _is_null(jvm, expression):
                given.discard(expression.name().lower())
    return given


def missing_columns(pending: SparkWrite, given: set[str]) -> set[str]:
    """Returns the generated columns, in lower case, that data with the columns `given` leaves out."""
    return {column.lower() for column, _ in pending.generated_columns} - given


def _is_null(jvm: Jvm, expression: Any) -> bool:
    """Returns whether a column of a projection is a constant NULL."""
    while expression.getClass().getSimpleName() in ("Alias", "Cast"):
        expression = expression.child()
    return expression.getClass().getSimpleName() == "Literal" and expression.value() is None


def without(jvm: Jvm, data: Any, missing: set[str]) -> Any:
    """Returns `data` without the columns that are to be computed."""
    names = [name for name in data.columns() if name.lower() in missing]
    return data.drop(jvm.seq(names)) if names else data


def optional(table_schema_json: str, missing: set[str]) -> str:
    """Returns the schema in which the columns to be computed may be NULL at first."""
    schema = json.loads(table_schema_json)
    for column in schema["fields"]:
        if column["name"].lower() in missing:
            column["nullable"] = True
    return json.dumps(schema)


def enforced(
    jvm: Jvm,
    data: Any,
    pending: SparkWrite,
    missing: set[str],
    is_written: Any | None = None,
    partly: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Returns `data`, which has the table's columns, with the missing columns computed and all rows checked.

    With the condition `is_written`, only rows for which it is true are computed and checked. Of the columns `partly`,
    only rows that meet the column's condition lack the value. Further columns stay as they are.
    """
    # Generated columns are computed from values as they are stored, and may be partition columns themselves.
    data = _as_stored(jvm, data, pending)
    if missing or partly:
        data = _as_stored(jvm, _computed(jvm, data, pending, missing, is_written, partly), pending)
    functions = jvm.functions
    # What each rule says, and the rows that it does not concern.
    rules: list[tuple[str, Any, Any | None]] = [
        (f"the constraint '{name}' ({sql}) is not met", functions.expr(sql), None)
        for name, sql in pending.checks
    ]
    types = _types(data)
    for column, sql in pending.generated_columns:
        if column.lower() not in missing:
            expected = functions.expr(sql).cast(types[column.lower()])
            rule = f"the generated column '{column}' is not the value of its expression ({sql})"
            is_equal = functions.col(quoted(column)).eqNullSafe(expected)
            rules.append((rule, is_equal, partly.get(column.lower())))
    if not rules:
        return data
    # A column loses its NOT NULL through the check, which matters only to the schema of the Parquet files.
    fields = list(data.schema().fields())
    carrier = next((field for field in fields if field.nullable()), fields[0])
    checked = functions.col(quoted(carrier.name()))
    for rule, condition, exempt in rules:
        # NULL does not meet a constraint.
        met = functions.coalesce(jvm.seq([condition, functions.lit(False)]))
        if exempt is not None:
            met = functions.when(exempt, functions.lit(True)).otherwise(met)
        if is_written is not None:
            met = functions.when(is_written, met).otherwise(functions.lit(True))
        refusal = functions.raise_error(_refusal(jvm, data, rule, condition)).cast(carrier.dataType())
        checked = functions.when(met, checked).otherwise(refusal)
    columns = [
        checked.alias(name) if name == carrier.name() else functions.col(quoted(name))
        for name in (field.name() for field in fields)
    ]
    return data.select(jvm.seq(columns))


def _computed(
    jvm: Jvm,
    data: Any,
    pending: SparkWrite,
    missing: set[str],
    is_written: Any | None,
    partly: Mapping[str, Any],
) -> Any:
    functions = jvm.functions
    types = _types(data)
    expressions = {column.lower(): sql for column, sql in pending.generated_columns}
    not_null = _required(pending)
    columns = []
    for name in data.columns():
        key = name.lower()
        if key not in missing and key not in partly:
            columns.append(functions.col(quoted(name)))
            continue
        value = functions.expr(expressions[key]).cast(types[key])
        if key in not_null:
            text = f"{_REFUSAL}the generated column '{name}' is NOT NULL, and its expression is NULL"
            refusal = functions.raise_error(functions.lit(text)).cast(types[key])
            value = functions.when(value.isNotNull(), value).otherwise(refusal)
        for condition in (partly.get(key), is_written):
            if condition is not None:
                value = functions.when(condition, value).otherwise(functions.col(quoted(name)))
        columns.append(value.alias(name))
    return data.select(jvm.seq(columns))


def _as_stored(jvm: Jvm, data: Any, pending: SparkWrite) -> Any:
    """Returns `data` with NULL for empty partition values, which are stored as NULL (PROTOCOL.md, "Partition Value
    Serialization"), if there are rules that may read them.
    """
    partitions = {name.lower() for name in pending.partition_columns}
    if not partitions or not (pending.checks or pending.generated_columns):
        return data
    functions = jvm.functions
    columns = []
    for field in data.schema().fields():
        column = functions.col(quoted(field.name()))
        if field.name().lower() in partitions and field.dataType().typeName() in ("string", "binary"):
            is_empty = functions.length(column).equalTo(0)
            column = functions.when(is_empty, functions.lit(None)).otherwise(column).alias(field.name())
        columns.append(column)
    return data.select(jvm.seq(columns))


def _required(pending: SparkWrite) -> set[str]:
    fields = json.loads(pending.table_schema_json or '{"fields": []}')["fields"]
    return {field["name"].lower() for field in fields if not field["nullable"]}


def _types(data: Any) -> dict[str, Any]:
    return {field.name().lower(): field.dataType() for field in data.schema().fields()}


def _refusal(jvm: Jvm, data: Any, rule: str, condition: Any) -> Any:
    """Returns the text of the error, with the values of the columns that the condition reads."""
    functions = jvm.functions
    plan = data.select(jvm.seq([condition])).queryExecution().analyzed()
    read = {attribute.name() for attribute in jvm.sequence(plan.references().toSeq())}
    parts = [functions.lit(_REFUSAL + rule)]
    for position, name in enumerate(name for name in data.columns() if name in read):
        text = functions.col(quoted(name)).cast("string")
        parts.append(functions.lit(f"{', ' if position else ': '}{name} = "))
        parts.append(functions.coalesce(jvm.seq([text, functions.lit("NULL")])))
    return functions.concat(jvm.seq(parts))


def error_of(java_exception: Any) -> InvalidArgumentError | None:
    """Returns the error for a job that failed because a row broke a rule; None for other exceptions."""
    for cause in causes(java_exception):
        found = _MESSAGE.search(cause.getMessage() or "")
        if found:
            return InvalidArgumentError(f"{_REFUSAL}{found[1]}; nothing was committed")
    return None
