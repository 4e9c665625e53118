"""Identity columns, whose values Spark's tasks generate (PROTOCOL, "Identity Columns").

- The core determines which columns need values, and the first value and the step of each.
- Each row of the job gets a unique value (`IdentityNumbers.java`). Rows are not shuffled after they have got their
  values, so a task that Spark repeats gives its rows the same values, and the files of only one attempt are committed.
- The core reads the high water mark from the files. Two commits that move it conflict, so no value exists twice.
"""

from deltalog._internal import SparkWrite

Counted = dict[str, tuple[int, int]]
"""The first value and the step of each column to be counted, by its name in lower case."""


def counted_columns(pending: SparkWrite, given: set[str]) -> Counted:
    """Returns the identity columns that rows with the columns `given` lack.

    Raises `SchemaMismatchError` if a column is given whose values are always generated.
    """
    values = pending.identity_values(sorted(given))
    return {column.lower(): (first, step) for column, first, step in values}


def numbers(counted: Counted, names: list[str]) -> list[dict[str, int]]:
    """Describes the values of the columns to be counted, for rows with the table's columns `names`."""
    keys = [name.lower() for name in names]
    return [
        {"position": keys.index(column), "first": first, "step": step}
        for column, (first, step) in counted.items()
    ]
