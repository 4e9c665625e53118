"""DELETE, UPDATE and MERGE under Spark Connect if the server uses deltalog's catalog: the server executes the whole
statement.

Spark Connect has no message for a statement with columns as conditions and values. So the client sends a hint on the
target, or on the join of the target and the source, and the server builds the statement from it
(`CarriedStatements.java`):

    hint(description as JSON, condition, value, …)
"""

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from deltalog.spark.connect.target import as_column
from deltalog.spark.dml.clauses import Condition, MergeClause, Values
from deltalog.spark.errors import UnsupportedFeatureError

_HINT = "deltalog_statement"
_AFFECTED = "num_affected_rows"


class ServerTarget:
    """The target of a statement that the server executes. It contains a DataFrame that reads the table."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows

    def delete(self, condition: Condition | None) -> tuple[int, ...]:
        """Deletes rows. Returns the number of deleted rows."""
        return _executed(self.rows, {"statement": "DELETE"}, condition, {})

    def update(self, condition: Condition | None, values: Values) -> tuple[int, ...]:
        """Changes rows. Returns the number of changed rows."""
        return _executed(self.rows, {"statement": "UPDATE"}, condition, values)

    def merge(
        self,
        source: DataFrame,
        condition: Condition,
        kinds: Sequence[Sequence[MergeClause]],
        evolves: bool,
    ) -> tuple[int, ...]:
        """Merges `source` into the table; returns how many rows were affected, updated, deleted and inserted.

        `kinds` are the clauses for rows that match, for rows of the source without a match, and for rows of the table
        without a match.
        """
        expressions: list[Column] = []
        clauses = [
            [
                {"action": clause.action, **_described(clause.condition, clause.values, expressions)}
                for clause in kind
            ]
            for kind in kinds
        ]
        statement = {"statement": "MERGE", "clauses": clauses, "evolves": evolves}
        return _answered(self.rows.join(source, as_column(condition)), statement, expressions)


def _executed(
    rows: DataFrame, statement: dict[str, Any], condition: Condition | None, values: Values
) -> tuple[int, ...]:
    expressions: list[Column] = []
    described = _described(condition, values, expressions)
    return _answered(rows, {**statement, **described}, expressions)


def _described(
    condition: Condition | None, values: Values | None, expressions: list[Column]
) -> dict[str, Any]:
    """Adds the condition and the values to the expressions, and returns their description. `values` is None for a
    clause that assigns all columns, and for a clause that deletes.
    """
    if condition is not None:
        expressions.append(as_column(condition))
    expressions += [as_column(value) for value in (values or {}).values()]
    return {"has_condition": condition is not None, "columns": None if values is None else list(values)}


def _answered(rows: DataFrame, statement: dict[str, Any], expressions: list[Column]) -> tuple[int, ...]:
    # Only `collect` may be called. For an attribute such as `columns`, Spark 4.0 would also execute the statement, to
    # determine the columns of its result.
    answer = rows.hint(_HINT, json.dumps(statement), *expressions).collect()
    if len(answer) != 1 or answer[0].__fields__[:1] != [_AFFECTED]:
        raise UnsupportedFeatureError(
            f"the server has not executed the {statement['statement']}, and nothing was changed: its deltalog is older "
            "than this client's, or spark.sql.optimizer.disableHints is set"
        )
    return tuple(answer[0])
