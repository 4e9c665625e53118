"""Evaluates SQL expressions on Arrow data."""

from deltalog._internal.stream import ArrowStream
from deltalog.arrow_types import ArrowData

def function_names() -> list[str]:
    """Returns the names of all functions that the core can evaluate, in lower case."""

def rule_functions() -> tuple[list[str], list[str]]:
    """Returns the names, in lower case, of the functions that expressions in the metadata of a table may call.

    The first list has the deterministic functions. The second list has the functions that return the time at which the
    statement began.
    """

def expression_bytes() -> int:
    """Returns the maximum number of bytes that the values of an expression may use at the same time.

    Raises:
        InvalidArgumentError: If the environment variable `DELTALOG_EXPRESSION_BYTES` is not a size.
    """

def default_value(schema_json: str, sql: str) -> ArrowStream:
    """Evaluates the default value `sql` of the only column in a schema. Returns one row with the column `value`.

    Raises InvalidArgumentError if deltalog cannot compute it, or if its value differs from row to row. Times without a
    zone are in UTC.
    """

def evaluate(stream: ArrowData, sql: str, time_zone: str) -> ArrowStream:
    """Evaluates the expression `sql` for each row of an Arrow stream. Returns the column `value`.

    The expression is evaluated in the same way as a constraint of a table. An error in the first batch is raised at
    once.
    """
