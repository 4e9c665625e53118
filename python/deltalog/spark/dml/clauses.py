"""The arguments of DELETE, UPDATE and MERGE."""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import Column

from deltalog.checked import is_of_spark, is_text
from deltalog.errors import wrong_argument

Condition = str | Column
Values = Mapping[str, str | Column]
"""The assigned values by column (or field of a struct), as SQL text or as `Column`."""


_EXPECTED = "a value for at least one column, as SQL text or a Column, such as {'column': 'expression'}"


def values_argument(values: object, name: str) -> Values:
    """Checks the values that a statement assigns to columns, which were passed as the parameter `name`."""
    if not isinstance(values, Mapping) or not values:
        raise wrong_argument(name, values, _EXPECTED)
    for column, value in values.items():
        if not is_text(column):
            raise wrong_argument(name, values, "the names of columns as strings")
        if not (is_text(value) or is_of_spark(value, Column)):
            raise wrong_argument(f"{name}[{column!r}]", value, "SQL text or a Column")
    return values


class MergeClause(NamedTuple):
    """A clause of a MERGE."""

    action: str
    """`update`, `delete` or `insert`."""
    condition: Condition | None
    values: Values | None = None
    """The values that the clause assigns. None for a clause that assigns all columns of the source, and for a clause
    that deletes.
    """
