"""Evaluates SQL expressions on Arrow data."""

from deltalog._internal.stream import ArrowStream
from deltalog.arrow_types import ArrowData

def function_names() -> list[str]:
    """Returns the names of all functions of expressions, in lower case."""

def rule_functions() -> tuple[list[str], list[str]]:
    """Returns the names, in lower case, of the functions that expressions of tables may call.

    The first list has the deterministic functions, and the second one the functions of the time at which the
    statement began.
    """

def expression_bytes() -> int:
    """Returns how many bytes of memory the values of an expression may use at the same time.

    Raises:
        InvalidArgumentError: If the variable `DELTALOG_EXPRESSION_BYTES` is not a size.
    """

def default_value(schema_json: str, sql: str) -> ArrowStream:
    """Returns the column `value` with one row: the default value `sql` of the one column that a schema has.

    Raises InvalidArgumentError if deltalog cannot compute it, or if its value differs from row to row. Times without a
    zone are in UTC.
    """

def evaluate(stream: ArrowData, sql: str, time_zone: str) -> ArrowStream:
    """Returns the column `value`: the value of the expression `sql` for each row of an Arrow stream.

    The expression is computed as in constraints of tables. An error in the first batch is raised at once.
    """
