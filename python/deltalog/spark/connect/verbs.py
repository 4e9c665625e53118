"""`DeltaTable.delete` and `update` under Spark Connect.

    rows with positions ──► condition, new values ──► written by the format: positions of removed rows, new files

- The rows are read from one version, on which the commit is based.
- A condition in SQL text also determines which files may contain rows that meet it, and which commits of other writers
  are conflicts.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from deltalog.spark.connect.reads import may_query
from deltalog.spark.connect.statement import FILE, OPERATION, REMOVE, ROW, ROW_ID, WRITE
from deltalog.spark.connect.target import Begun, Target, as_column, named
from deltalog.spark.connect.values import Assignments
from deltalog.spark.dml.clauses import Condition, Values
from deltalog.spark.dml.text import StatementText
from deltalog.spark.errors import InvalidArgumentError

_NON_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_ANSI = "spark.sql.ansi.enabled"


def delete(target: Target, condition: Condition | None) -> dict[str, int]:
    """Deletes rows, and returns the metrics of the commit."""
    begun = target.begin("DELETE")
    if begun.is_applied:
        return {}
    expressions = [] if condition is None else [condition]
    rows = begun.rows(expressions, _pruning(begun, condition))
    analyzed(begun, rows, [] if condition is None else [as_column(condition)], [])
    removed = _where(rows, condition).select(*markers(rows, REMOVE))
    return begun.run(
        removed,
        text=StatementText("DELETE", text_of(condition), [], [], []),
        reads=_reads(begun, condition, []),
        assigned=[],
        given=[],
    )


def update(target: Target, condition: Condition | None, values: Values) -> dict[str, int]:
    """Changes rows, and returns the metrics of the commit."""
    begun = target.begin("UPDATE")
    if begun.is_applied:
        return {}
    table = begun.table
    expressions = [*([] if condition is None else [condition]), *values.values()]
    rows = begun.rows(expressions, _pruning(begun, condition))
    assignments = Assignments(table, target.alias, values)
    conditions = [] if condition is None else [as_column(condition)]
    assignments.fit(analyzed(begun, rows, conditions, assignments.values))
    columns = []
    for field in table.schema.fields:
        old = named(rows, field.name)
        new = assignments.updated(field, old)
        # Other generated columns are left out, so that they are computed again when the changed rows are written.
        if new is not None or field.name.lower() not in table.generated:
            columns.append((old if new is None else new).alias(field.name))
    columns += row_ids(begun, rows)
    changed = _where(rows, condition).select(*columns, *markers(rows, REMOVE | WRITE))
    return begun.run(
        changed,
        text=StatementText("UPDATE", text_of(condition), [], [], []),
        reads=_reads(begun, condition, list(values.values())),
        assigned=sorted(assignments.columns),
        given=[],
    )


def markers(rows: DataFrame, operation: int | Column) -> list[Column]:
    """Returns the marker columns for rows of the target."""
    value = sf.lit(operation) if isinstance(operation, int) else operation
    return [value.cast("int").alias(OPERATION), named(rows, FILE), named(rows, ROW)]


def row_ids(begun: Begun, rows: DataFrame) -> list[Column]:
    """Returns the column with the row ids if the table tracks rows. Changed rows keep their ids."""
    return [named(rows, ROW_ID)] if begun.table.tracks_rows else []


def text_of(condition: Condition | None) -> str | None:
    """Returns a condition as the history of the table shows it."""
    if condition is None or isinstance(condition, str):
        return condition
    return str(condition).removeprefix("Column<'").removesuffix("'>")


def analyzed(
    begun: Begun, rows: DataFrame, conditions: Sequence[Column], values: Sequence[Column]
) -> list[DataType]:
    """Returns the types of `values`, which are expressions over `rows`; the `conditions` are checked in the same way.

    Raises an error for a nondeterministic expression, as Spark does for SQL statements.
    """
    expressions = [*conditions, *values]
    if not expressions:
        return []
    selected = [value.alias(f"_{index}") for index, value in enumerate(values)]
    # The expressions are put into a join condition, because Spark does not check them in every operator.
    one = begun.target.spark.range(1).select(sf.lit(0).alias("__deltalog_one"))
    tested = reduce(lambda a, b: a & b, [expression.isNull() for expression in expressions])
    try:
        schema = rows.join(one, tested, "left_semi").select(*selected).schema
    except PySparkException as error:
        if error.getCondition() == _NON_DETERMINISTIC:
            raise InvalidArgumentError(
                f"[{_NON_DETERMINISTIC}] conditions and values of statements that change rows must be deterministic"
            ) from error
        # The error may come from the join, which does not accept all subqueries.
        schema = rows.select(*selected).schema
    return [field.dataType for field in schema.fields]


def _where(rows: DataFrame, condition: Condition | None) -> DataFrame:
    return rows if condition is None else rows.where(as_column(condition))


def _pruning(begun: Begun, condition: Condition | None) -> str | None:
    """Returns the text of a condition if the core understands it as Spark does, and otherwise None."""
    is_plain = isinstance(condition, str) and begun.target.alias is None
    is_ansi = str(begun.target.spark.conf.get(_ANSI)).lower() == "true"
    return condition if isinstance(condition, str) and is_plain and is_ansi else None


def _reads(begun: Begun, condition: Condition | None, values: list[str | Column]) -> tuple[str, str] | None:
    expressions = [*([] if condition is None else [condition]), *values]
    if any(may_query(begun.target.spark, expression) for expression in expressions):
        return None
    return _pruning(begun, condition) or "true", begun.time_zone
