"""Generated columns in statements that change rows (PROTOCOL, "Generated Columns"). Names are in lower case."""

from collections.abc import Sequence

from deltalog._internal import SparkWrite

Clause = tuple[int, set[str]]
"""For the number of each clause that writes rows, the columns to which the clause assigns values."""
LeftOut = dict[str, list[int] | None]
"""The generated columns to compute. Each is computed in the rows of the clauses with these numbers, or in all rows."""


def left_out(write: SparkWrite, clauses: Sequence[Clause]) -> LeftOut:
    """Returns the generated columns to which clauses assign no value."""
    found: LeftOut = {}
    for name, _ in write.generated_columns:
        column = name.lower()
        numbers = [number for number, given in clauses if column not in given]
        if numbers:
            found[column] = None if len(numbers) == len(clauses) else numbers
    return found
