"""Identity columns, whose values Spark's tasks count up (PROTOCOL, "Identity Columns").

- The core says which columns are to be counted, and the first value and the step of each.
- Each row of the job gets a value of its own (`IdentityNumbers.java`). No shuffle comes between the column and the
  files: a task that Spark repeats gives its rows the same values, and the files of only one attempt are committed.
- The core reads the high water mark from the files. Two commits that move it conflict, so no value exists twice.
"""

from typing import Any

from deltalog._internal import SparkWrite
from deltalog.filters import quoted
from deltalog.spark.jvm import Jvm

Counted = dict[str, tuple[int, int]]
"""The first value and the step of each column to be counted, by its name in lower case."""


def counted_columns(pending: SparkWrite, given: set[str]) -> Counted:
    """Returns the identity columns that rows with the columns `given` lack.

    Raises `SchemaMismatchError` if a column is given whose values are always generated.
    """
    values = pending.identity_values(sorted(given))
    return {column.lower(): (first, step) for column, first, step in values}


def with_numbers(jvm: Jvm, data: Any, counted: Counted) -> Any:
    """Returns `data`, which has the table's columns, with the values of the columns to be counted."""
    if not counted:
        return data
    functions = jvm.functions
    long = jvm.java("java.lang.Long")
    columns = []
    for name in data.columns():
        if name.lower() in counted:
            first, step = counted[name.lower()]
            # py4j would pass a small number as an `Integer`.
            values = jvm.static("IdentityNumbers", "of", name, long.valueOf(first), long.valueOf(step))
            columns.append(values.alias(name))
        else:
            columns.append(functions.col(quoted(name)))
    return data.select(jvm.seq(columns))
