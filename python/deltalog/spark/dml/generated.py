"""Generated columns in statements that change rows (PROTOCOL, "Generated Columns"). Names are in lower case."""

from collections.abc import Sequence

from deltalog._internal import SparkWrite

Clause = tuple[int, set[str]]
"""The number of a clause that writes rows, and the columns to which the clause assigns values."""
LeftOut = dict[str, list[int] | None]
"""The generated columns to compute, each with the numbers of the clauses that need it, or None for all rows."""


def left_out(write: SparkWrite, clauses: Sequence[Clause]) -> LeftOut:
    """Returns the generated columns to which at least one clause assigns no value."""
    found: LeftOut = {}
    for name, _ in write.generated_columns:
        column = name.lower()
        numbers = [number for number, given in clauses if column not in given]
        if numbers:
            found[column] = None if len(numbers) == len(clauses) else numbers
    return found
