"""Statements that delete, change and merge rows of a table."""

from collections.abc import Mapping
from typing import Any

from deltalog import _internal
from deltalog._internal import AlreadyApplied
from deltalog.arguments import stream_argument
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.filters import Filter, value_as_sql
from deltalog.handle import TableHandle
from deltalog.merge import MergeArguments, TableMerger, sql_values
from deltalog.schema import PrimitiveType, Schema

__all__ = ["TableStatements"]


class TableStatements(TableHandle):
    """DELETE, UPDATE and MERGE.

    A statement begins with a look at the log, acts on the newest version, and makes one commit, which the table is then
    at. A table that is pinned to a version, by `version` or `timestamp` or `load_as_version()`, refuses it.

    If the table allows deletion vectors (`delta.enableDeletionVectors`), rows are deleted by them, and only changed
    rows are written. Otherwise the files that have such rows are written again. Two statements on different rows of one
    file both commit, if they delete rows by vectors; on a common row, the second one is a conflict.

    Statements return their metrics by the names that `history()` shows, which are those of the JVM connector, such as
    `numDeletedRows`. If no row is concerned, nothing is committed, and the table is at the newest version. If
    `commit_properties` name an application that has done the statement before, an `AlreadyApplied` is returned.

    Raises:
        InvalidArgumentError: a condition or a value cannot be evaluated, a row breaks a rule of the table, or the table
            is append-only, or is pinned to a version. The table is unchanged.
        SchemaMismatchError: a value does not fit its column.
        CommitConflictError: another writer has changed the same rows, or added rows that the statement should have
            seen.
    """

    def delete(
        self, predicate: Filter | None = None, *, commit_properties: CommitProperties | None = None
    ) -> dict[str, int] | AlreadyApplied:
        """Deletes the rows for which `predicate` is true; without it all rows.

        Files are removed unread if their partition values or statistics show that all of their rows match.

        Args:
            predicate: SQL such as `"delay > 60 OR delay IS NULL"`, or tuples as in `files()`.
            commit_properties: what to record with the commit.

        Returns:
            The metrics. `numDeletedRows` is missing if files without statistics were removed unread.
        """
        arguments = commit_arguments(commit_properties)
        newest = self._newest_to_change()
        return self._done(_internal.delete_rows(newest, self._filter(predicate), arguments))

    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: Filter | None = None,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, int] | AlreadyApplied:
        """Gives new values to columns of the rows for which `predicate` is true; without it of all rows.

        Values are computed from the row as it was, and cast to the types of their columns. Partition columns may be
        changed. A generated column that is not among them is computed again.

        Args:
            updates: values in SQL by column, such as `{"price": "price * 1.1"}`.
            new_values: values of Python by column, such as `{"price": 150.1}`. Either these or `updates` are given.
            predicate: SQL, or tuples as in `files()`.
            commit_properties: what to record with the commit.
        """
        arguments = commit_arguments(commit_properties)
        newest = self._newest_to_change()
        values = list(_values(updates, new_values, Schema._of(newest.schema_json)).items())
        return self._done(_internal.update_rows(newest, values, self._filter(predicate), arguments))

    def merge(
        self,
        source: object,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> TableMerger:
        """Begins a MERGE, whose clauses and execution are methods of what it returns.

            merge = table.merge(updates, "target.id = source.id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()

        Rows match if `predicate` is true. Equalities of a value of the table and one of the source, joined by AND, find
        matches by hashing, and leave out files of the table that cannot have one. NULL equals nothing; `<=>` compares
        it. If several rows of the source match one row of the table, the MERGE is refused, unless rows with a match are
        only deleted, without a further condition.

        `execute()` merges into the version that is the newest then. Rows of the source that you have computed from an
        older version do not know what others have changed since. If the source is a table, or a stream of
        `to_arrow()`, and was read from this table, such a change is a conflict.

        Args:
            source: anything with the Arrow stream interface (a pyarrow table, a polars frame, a reader). It is read
                once and held in memory; the table is not.
            predicate: SQL such as `"target.id = source.id AND source.day > target.day"`.
            source_alias: the name of the source in SQL; `source` if None.
            target_alias: the name of the table; `target` if None.
            merge_schema: refused if true. The columns of the source must be columns of the table.
            commit_properties: what to record with the commit.
        """
        if merge_schema:
            raise UnsupportedFeatureError(
                "a MERGE does not change the schema of the table: add the columns before, with "
                "alter.add_columns or an empty append with schema_mode='merge'"
            )
        stream, arguments = stream_argument(source), commit_arguments(commit_properties)

        def run(merge: MergeArguments) -> dict[str, int] | AlreadyApplied:
            newest = self._newest_to_change()
            rows = stream._snapshot.scan() if isinstance(stream, TableHandle) else stream
            return self._done(_internal.merge_rows(newest, rows, merge, arguments))

        return TableMerger(run, predicate, source_alias, target_alias)

    def _done(
        self, done: tuple[dict[str, int], int | None] | AlreadyApplied
    ) -> dict[str, int] | AlreadyApplied:
        """Notes the version of a statement, if there is one, and returns its metrics."""
        if isinstance(done, AlreadyApplied):
            return done
        metrics, version = done
        self._has_committed(version)
        return metrics


def _values(
    updates: Mapping[str, str] | None, new_values: Mapping[str, Any] | None, schema: Schema
) -> dict[str, str]:
    """Returns the values of an update in SQL, by column."""
    if (updates is None) == (new_values is None):
        raise InvalidArgumentError("an update needs either updates, which are SQL, or new_values")
    if updates is not None:
        return sql_values(updates)
    kinds = {
        field.name.lower(): field.type.type
        for field in schema.fields
        if isinstance(field.type, PrimitiveType)
    }
    return {
        name: value_as_sql(value, kinds.get(str(name).lower(), "string"), name)
        for name, value in (new_values or {}).items()
    }
