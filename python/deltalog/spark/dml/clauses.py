"""The arguments of the verbs."""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import Column

Condition = str | Column
Values = Mapping[str, str | Column]
"""The new value of each column, which may be a field of a struct, as SQL text or as a column."""


class MergeClause(NamedTuple):
    """A clause of a MERGE."""

    action: str
    """`update`, `delete` or `insert`."""
    condition: Condition | None
    values: Values | None = None
    """What a clause writes; None for all columns of the source, and for a clause that deletes."""
