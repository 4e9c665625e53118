"""MERGE: changes the rows of a table according to the rows of a source."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from deltalog.arguments import Names, names_argument
from deltalog.checked import checks_arguments, is_text
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument

_Result = TypeVar("_Result")

__all__ = ["MergeArguments", "MergeClause", "TableMerger", "sql_values"]


class MergeClause(NamedTuple):
    """A clause of a MERGE, as an argument of the compiled module."""

    by_source: bool
    """Whether the clause applies to rows of the table that match no source row."""
    action: str
    """`update`, `delete` or `insert`."""
    condition: str | None
    values: Sequence[tuple[str, str]] | None
    """The assigned values as SQL, by column; None assigns all columns of the source."""
    except_columns: Sequence[str] = ()


class MergeArguments(NamedTuple):
    """A MERGE, as an argument of the compiled module."""

    condition: str
    source_alias: str
    target_alias: str
    clauses: Sequence[MergeClause]


@checks_arguments
class TableMerger(Generic[_Result]):
    """A MERGE under construction, from `DeltaTable.merge`.

    If there are several clauses for the same rows, the first clause whose `predicate` is true applies. Only the last of
    them can be without a predicate. Values and predicates are SQL. Columns are qualified with their table, such as
    `source.price`, unless only one of the two tables has the column. Expressions of `when_not_matched_insert` can only
    use columns of the source, and expressions of `when_not_matched_by_source_...` only columns of the table.
    """

    def __init__(
        self,
        run: Callable[[MergeArguments], _Result],
        condition: str,
        source_alias: str | None,
        target_alias: str | None,
        *,
        reads_once: bool = False,
    ) -> None:
        self._run, self._reads_once, self._is_done = run, reads_once, False
        self._condition = condition
        self._aliases = (source_alias or "source", target_alias or "target")
        self._clauses: list[MergeClause] = []

    def when_matched_update(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> "TableMerger[_Result]":
        """Assigns new values to columns of rows with a match.

        Args:
            updates: values in SQL by column, such as `{"price": "source.price"}`.
            predicate: a condition that selects some of these rows.
        """
        return self._with(MergeClause(False, "update", predicate, list(sql_values(updates).items())))

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Names | None = None
    ) -> "TableMerger[_Result]":
        """In rows with a match, sets each column to the value of the source column with the same name, except for the
        columns that are excluded.

        Columns that the table lacks are left out.
        """
        return self._with(MergeClause(False, "update", predicate, None, _names(except_cols)))

    def when_matched_delete(self, predicate: str | None = None) -> "TableMerger[_Result]":
        """Deletes rows with a match. If this is the only clause for such rows and has no `predicate`, a row may have
        several matches.
        """
        return self._with(MergeClause(False, "delete", predicate, []))

    def when_not_matched_insert(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> "TableMerger[_Result]":
        """Adds rows of the source without a match. Columns without a value get their default value, or NULL."""
        return self._with(MergeClause(False, "insert", predicate, list(sql_values(updates).items())))

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Names | None = None
    ) -> "TableMerger[_Result]":
        """Adds rows of the source without a match, with all columns of the source except for those that are excluded.

        Columns that the table lacks are left out.
        """
        return self._with(MergeClause(False, "insert", predicate, None, _names(except_cols)))

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> "TableMerger[_Result]":
        """Assigns new values to columns of rows of the table without a match."""
        return self._with(MergeClause(True, "update", predicate, list(sql_values(updates).items())))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> "TableMerger[_Result]":
        """Deletes rows of the table without a match."""
        return self._with(MergeClause(True, "delete", predicate, []))

    def execute(self) -> _Result:
        """Executes the MERGE, and returns the metrics. The source is read once, and held in memory.

        Raises:
            InvalidArgumentError: the MERGE was already executed, or attempted with a source that can be read only once.
        """
        if self._is_done:
            refused = InvalidArgumentError("a MERGE cannot be executed twice")
            raise hinted(
                refused, "begin a new one with DeltaTable.merge, with a source that still has all its rows"
            )
        self._is_done = self._reads_once
        done = self._run(MergeArguments(self._condition, *self._aliases, self._clauses))
        self._is_done = True
        return done

    def _with(self, clause: MergeClause) -> "TableMerger[_Result]":
        self._clauses.append(clause)
        return self


def _names(except_cols: Names | None) -> list[str]:
    return [] if except_cols is None else names_argument(except_cols, "except_cols")


def sql_values(values: Mapping[str, str]) -> dict[str, str]:
    """Checks that all values are strings, which contain SQL."""
    expected = "SQL text by column, such as {'price': 'price * 1.1'}"
    if not isinstance(values, Mapping):
        raise wrong_argument("updates", values, expected)
    for name, value in values.items():
        if not is_text(name) or not is_text(value):
            raise wrong_argument(f"updates[{name!r}]", value, expected)
    return dict(values)
