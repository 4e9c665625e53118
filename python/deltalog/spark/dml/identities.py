"""Identity columns in statements that change rows (PROTOCOL, "Identity Columns"). Names are in lower case."""

from collections.abc import Collection, Iterator, Sequence

from deltalog._internal import SparkWrite
from deltalog.spark.dml.generated import Clause
from deltalog.spark.errors import SchemaMismatchError, UnsupportedFeatureError


def check_assigned(write: SparkWrite, assigned: Collection[str]) -> None:
    """Raises an error if a value is assigned to an identity column of an existing row: only new rows get values."""
    for column, _ in write.identity_columns:
        if column.lower() in assigned:
            raise SchemaMismatchError(
                f"the values of the identity column '{column}' cannot be changed (table {write.location}): leave "
                "the column out of the assignments"
            )


def groups_of(write: SparkWrite, clauses: Sequence[Clause]) -> list[tuple[list[int], set[str]]]:
    """Divides the INSERT clauses of a MERGE into groups that assign values to the same identity columns. Returns the
    clauses of each group, and these columns.

    Each group is inserted by a separate job. Only the job of the last group may generate values, because the core reads
    the generated values from the files of one job.
    """
    given = dict(_given(write, [columns for _, columns in clauses]))
    groups: dict[frozenset[str], list[int]] = {}
    for place, (number, _) in enumerate(clauses):
        columns = frozenset(column.lower() for column, gives in given.items() if gives[place])
        groups.setdefault(columns, []).append(number)
    if sum(len(columns) < len(given) for columns in groups) > 1:
        raise UnsupportedFeatureError(
            f"the INSERT clauses leave out different identity columns (table {write.location}), which is not supported "
            "yet by deltalog: let all of them leave out the same ones"
        )
    ordered = sorted(groups.items(), key=lambda group: -len(group[0]))
    return [(numbers, set(columns)) for columns, numbers in ordered]


def check_given(write: SparkWrite, clauses: Sequence[Collection[str]]) -> None:
    """Raises an error if a clause assigns no value to an identity column, because tasks under Spark Connect cannot
    generate values in a MERGE. Also raises an error if a clause assigns a value to a column that does not allow this.

    `clauses` contains the columns to which each clause assigns values.
    """
    for column, given in _given(write, clauses):
        if not all(given):
            raise UnsupportedFeatureError(
                f"MERGE cannot generate values of the identity column '{column}' under Spark Connect yet (table "
                f"{write.location}): assign a value in the INSERT clause, or use a classic session"
            )


def _given(write: SparkWrite, clauses: Sequence[Collection[str]]) -> Iterator[tuple[str, list[bool]]]:
    """Yields for each identity column whether each clause assigns a value to it. Raises an error if a clause
    assigns a value to a column whose values are always generated.
    """
    for column, accepts_values in write.identity_columns:
        given = [column.lower() in columns for columns in clauses]
        if any(given) and not accepts_values:
            raise SchemaMismatchError(
                f"the values of the identity column '{column}' are always generated (table {write.location}): "
                "leave the column out of the INSERT clause"
            )
        yield column, given
