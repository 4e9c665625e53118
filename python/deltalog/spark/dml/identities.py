"""Identity columns in statements that change rows (PROTOCOL, "Identity Columns"). Names are in lower case."""

from collections.abc import Collection, Iterator, Sequence

from deltalog._internal import SparkWrite
from deltalog.spark.errors import SchemaMismatchError, UnsupportedFeatureError
from deltalog.spark.write.identity import Counted, counted_columns


def check_assigned(write: SparkWrite, assigned: Collection[str]) -> None:
    """Raises an error if a value is assigned to an identity column: its values only come with new rows."""
    for column, _ in write.identity_columns:
        if column.lower() in assigned:
            raise SchemaMismatchError(
                f"the values of the identity column '{column}' cannot be changed (table {write.location}): leave "
                "the column out of the assignments"
            )


def of_inserts(write: SparkWrite, clauses: Sequence[Collection[str]]) -> Counted:
    """Returns the identity columns whose values the job of a MERGE that inserts rows has to generate.

    `clauses` are the columns that each clause gives a value. To be called after the jobs over rows that have their
    values: the core reads the generated ones from the files of the jobs that follow.
    """
    for column, given in _given(write, clauses):
        if any(given) and not all(given):
            raise UnsupportedFeatureError(
                f"only some INSERT clauses give a value to the identity column '{column}' (table {write.location}), "
                "which is not supported yet by deltalog: give all of them one, or none"
            )
    return counted_columns(write, set().union(*clauses)) if write.identity_columns else {}


def check_given(write: SparkWrite, clauses: Sequence[Collection[str]]) -> None:
    """Raises an error if new rows do not come with values of all identity columns, or with those of one whose values
    are always generated. `clauses` are the columns that each clause gives a value.

    (Tasks under Spark Connect cannot generate values in a MERGE.)
    """
    for column, given in _given(write, clauses):
        if not all(given):
            raise UnsupportedFeatureError(
                f"MERGE cannot generate values of the identity column '{column}' under Spark Connect yet (table "
                f"{write.location}): assign a value in the INSERT clause, or use a classic session"
            )


def _given(write: SparkWrite, clauses: Sequence[Collection[str]]) -> Iterator[tuple[str, list[bool]]]:
    """Yields each identity column with whether each clause gives it a value, which it must accept."""
    for column, accepts_values in write.identity_columns:
        given = [column.lower() in columns for columns in clauses]
        if any(given) and not accepts_values:
            raise SchemaMismatchError(
                f"the values of the identity column '{column}' are always generated (table {write.location}): "
                "leave the column out of the INSERT clause"
            )
        yield column, given
