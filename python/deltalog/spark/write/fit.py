"""Conversion of the rows of a write to the table's schema.

Columns are matched by name, types are cast according to Spark's store assignment, and partition values become the
log's text. This is one projection in Spark's plan, so no row passes through Python and nothing is read twice. A
column that cannot be stored is an error here, before any file is written. A value that does not fit its type (an
overflow, or a null in a column without nulls) fails the job.
"""

from typing import Any

from deltalog.spark.errors import InvalidArgumentError, SchemaMismatchError
from deltalog.spark.jvm import Jvm

_CATALYST = "org.apache.spark.sql.catalyst"
_TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


def to_table(jvm: Jvm, session: Any, data: Any, table_schema_json: str, table: str) -> Any:
    """Returns `data` with exactly the table's columns. Missing columns are null; unknown columns are an error."""
    resolver = jvm.singleton(f"{_CATALYST}.analysis.TableOutputResolver")
    schema = jvm.struct(table_schema_json)
    expected = jvm.java("org.apache.spark.sql.catalyst.types.DataTypeUtils").toAttributes(schema)
    plan = data.queryExecution().analyzed()
    if plan.output().size() == 0:
        raise SchemaMismatchError(f"there are no columns to write into the table {table}")
    if session.sessionState().conf().storeAssignmentPolicy().toString() == "LEGACY":
        raise InvalidArgumentError(
            f"the rows cannot be written into the table {table} while spark.sql.storeAssignmentPolicy is LEGACY, which "
            "changes values that do not fit: set it to ANSI or STRICT"
        )
    _check_no_extra(data, schema, session.sessionState().conf().caseSensitiveAnalysis(), table)
    fill = _fill_missing(jvm, True)
    resolved = resolver.resolveOutputColumns(table, expected, plan, True, session.sessionState().conf(), fill)
    return dataset(jvm, session, resolved)


def by_position(jvm: Jvm, session: Any, data: Any, schema: Any, table: str) -> Any:
    """Returns `data` with the columns of `schema`, matched by position."""
    resolver = jvm.singleton(f"{_CATALYST}.analysis.TableOutputResolver")
    expected = jvm.java("org.apache.spark.sql.catalyst.types.DataTypeUtils").toAttributes(schema)
    plan, conf = data.queryExecution().analyzed(), session.sessionState().conf()
    resolved = resolver.resolveOutputColumns(table, expected, plan, False, conf, _fill_missing(jvm, False))
    return dataset(jvm, session, resolved)


def _check_no_extra(data: Any, schema: Any, case_sensitive: bool, table: str) -> None:
    key = str if case_sensitive else str.lower
    known = {key(name) for name in schema.fieldNames()}
    extra = [name for name in data.columns() if key(name) not in known]
    if extra:
        raise SchemaMismatchError(
            f"the table {table} has no column {', '.join(extra)}; it has {', '.join(schema.fieldNames())}. A write "
            "does not add columns"
        )


def partition_text(jvm: Jvm, data: Any, partition_columns: list[str]) -> Any:
    """Returns `data` with the partition columns converted to the log's text, so that directory names are exact."""
    names = list(data.columns())
    by_name = {name.lower(): name for name in names}
    missing = [name for name in partition_columns if name.lower() not in by_name]
    if missing:
        raise InvalidArgumentError(
            f"the data has no column {', '.join(missing)} to partition by; it has {', '.join(names)}"
        )
    if len({name.lower() for name in partition_columns}) == len(names):
        raise InvalidArgumentError(
            "all columns of the table are partition columns, but the data files need at least one column"
        )
    if not partition_columns:
        return data
    partitions = {name.lower() for name in partition_columns}
    utilities = jvm.java("org.apache.spark.sql.classic.ExpressionUtils")
    columns = []
    for attribute in jvm.sequence(data.queryExecution().analyzed().output()):
        name = attribute.name()
        columns.append(
            _text(jvm, utilities, attribute).alias(name)
            if name.lower() in partitions
            else utilities.column(attribute)
        )
    return data.select(jvm.seq(columns))


def to_physical(
    jvm: Jvm, data: Any, physical_schema_json: str, partition_columns: list[str], more: int = 0
) -> Any:
    """Returns `data`, which has the table's columns, with the names and the field ids that the table's files have.

    Partition columns that have been converted to text are only renamed. The last `more` columns, which are not the
    table's, stay as they are. (PROTOCOL.md, "Writer Requirements for Column Mapping".)
    """
    utilities = jvm.java("org.apache.spark.sql.classic.ExpressionUtils")
    partitions = {name.lower() for name in partition_columns}
    attributes = jvm.sequence(data.queryExecution().analyzed().output())
    of_table = len(attributes) - more
    columns = []
    for attribute, field in zip(
        attributes[:of_table], jvm.struct(physical_schema_json).fields(), strict=True
    ):
        column = utilities.column(attribute)
        if attribute.name().lower() not in partitions:
            # A cast between structs goes by position.
            column = column.cast(field.dataType())
        columns.append(getattr(column, "as")(field.name(), field.metadata()))
    columns += [utilities.column(attribute) for attribute in attributes[of_table:]]
    return data.select(jvm.seq(columns))


def with_directories(
    jvm: Jvm, data: Any, partition_columns: list[str], directory_columns: list[str], more: int = 0
) -> Any:
    """Returns `data` with the partition columns after all others, and their text as the columns `directory_columns`.

    The last `more` columns, which are not the table's, stay behind the partition columns.

    So Spark writes the partition columns to the files, and their text to the names of directories. (PROTOCOL.md,
    "Iceberg Compatibility V1", "… V2"; "Iceberg Compatibility V3" of the protocol's requests for comments.) An empty
    value is NULL, as the log has it.
    """
    utilities = jvm.java("org.apache.spark.sql.classic.ExpressionUtils")
    functions = jvm.functions
    attributes = {
        attribute.name(): attribute for attribute in jvm.sequence(data.queryExecution().analyzed().output())
    }
    names = list(attributes)
    last = names[len(names) - more :]
    columns = [
        utilities.column(attributes[name]) for name in names if name not in (*partition_columns, *last)
    ]
    for name in partition_columns:
        column = utilities.column(attributes[name])
        if attributes[name].dataType().typeName() in ("string", "binary"):
            column = functions.when(functions.length(column).gt(0), column)
        columns.append(getattr(column, "as")(name, attributes[name].metadata()))
    columns += [utilities.column(attributes[name]) for name in last]
    for name, directory in zip(partition_columns, directory_columns, strict=True):
        columns.append(_text(jvm, utilities, attributes[name]).alias(directory))
    return data.select(jvm.seq(columns))


def dataset(jvm: Jvm, session: Any, plan: Any) -> Any:
    """Returns a DataFrame of the JVM for a resolved plan."""
    return jvm.java("org.apache.spark.sql.classic.Dataset").ofRows(session, plan)


def _text(jvm: Jvm, utilities: Any, attribute: Any) -> Any:
    """Returns the column as the log's text (PROTOCOL.md, "Partition Value Serialization").

    Spark validates the text of binary values, because directory names would silently replace invalid UTF-8.
    """
    kind = attribute.dataType().typeName()
    types = jvm.java("org.apache.spark.sql.types.DataTypes")
    if kind == "string":
        return utilities.column(attribute)
    if kind == "timestamp":
        pattern = jvm.java(f"{_CATALYST}.expressions.Literal").create(_TIMESTAMP_FORMAT, types.StringType)
        return utilities.column(
            jvm.java(f"{_CATALYST}.expressions.DateFormatClass")(attribute, pattern, jvm.some("UTC"))
        )
    ansi = jvm.singleton(f"{_CATALYST}.expressions.EvalMode").ANSI()
    text = utilities.column(
        jvm.java(f"{_CATALYST}.expressions.Cast")(attribute, types.StringType, jvm.some("UTC"), ansi)
    )
    return jvm.functions.validate_utf8(text) if kind == "binary" else text


def _fill_missing(jvm: Jvm, fill: bool) -> Any:
    """Returns the last argument of `resolveOutputColumns`: a Boolean until Spark 4.1, a mode since 4.2."""
    resolver = jvm.java("java.lang.Class").forName(f"{_CATALYST}.analysis.TableOutputResolver")
    for method in resolver.getMethods():
        if method.getName() == "resolveOutputColumns":
            if method.getParameterTypes()[5].getName() == "boolean":
                return fill
            modes = jvm.singleton(f"{_CATALYST}.analysis.TableOutputResolver$DefaultValueFillMode")
            return modes.FILL() if fill else modes.NONE()
    raise AttributeError("TableOutputResolver.resolveOutputColumns")
