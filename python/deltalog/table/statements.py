"""Statements that delete, change and merge rows of a table."""

from collections.abc import Iterator, Mapping
from typing import Any, overload

from deltalog import _internal
from deltalog._internal import AlreadyApplied
from deltalog.arguments import size_argument, stream_argument
from deltalog.arrow_types import ArrowData
from deltalog.checked import checks_arguments, is_text
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError, hinted, shown, wrong_argument
from deltalog.filters import Filter, value_as_sql
from deltalog.metrics import Metrics
from deltalog.schema import Schema
from deltalog.table.handle import TableHandle
from deltalog.table.merge import MergeArguments, TableMerger, sql_values
from deltalog.writer_properties import WriterProperties, file_format_argument

__all__ = ["TableStatements"]


@checks_arguments
class TableStatements(TableHandle):
    """The methods of `DeltaTable` for DELETE, UPDATE and MERGE.

    A statement first reads the log, changes the newest version, and makes one commit. The table is then at the version
    of this commit. A table that is pinned to a version, by `version` or `timestamp` or `load_as_version()`, refuses
    statements.

    If the table allows deletion vectors (`delta.enableDeletionVectors`), rows are deleted by deletion vectors, and only
    changed rows are written. Otherwise every file that contains an affected row is rewritten. With deletion vectors,
    two concurrent statements that change different rows of one file both succeed; if they change the same row, the
    second statement raises `CommitConflictError`.

    Statements return their metrics under the names in `history()`, which are the same as in the JVM connector, such as
    `numDeletedRows`. If no row is affected, nothing is committed, and the table moves to the newest version. If the
    table has already recorded the application's version in `commit_properties`, the statement is skipped and returns an
    `AlreadyApplied`.

    Raises:
        InvalidArgumentError: a condition or a value cannot be evaluated, a row breaks a rule of the table, or the table
            is append-only, or is pinned to a version. The table is unchanged.
        SchemaMismatchError: a value does not fit its column.
        CommitConflictError: another writer has changed the same rows, or added rows that the statement should have
            seen.
    """

    @overload
    def delete(
        self,
        predicate: Filter | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: None = None,
    ) -> Metrics: ...
    @overload
    def delete(
        self,
        predicate: Filter | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None,
    ) -> Metrics | AlreadyApplied: ...
    def delete(
        self,
        predicate: Filter | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> Metrics | AlreadyApplied:
        """Deletes the rows for which `predicate` is true; without a predicate, all rows.

        Files are removed without being read if their partition values, or statistics that deltalog has written, show
        that all of their rows match. Files with statistics of other writers are read.

        Args:
            predicate: SQL such as `"delay > 60 OR delay IS NULL"`, or tuples as in `files()`.
            writer_properties: how rewritten files with the remaining rows are encoded, as for `write_deltalake`.
            commit_properties: what to record with the commit.

        Returns:
            The metrics. The rows of files that are removed without being read are counted by deltalog's statistics or
            by the footer; `numDeletedRows` is missing if such a footer cannot be read.
        """
        arguments, encoding = commit_arguments(commit_properties), file_format_argument(writer_properties)
        newest = self._newest_to_change()
        return self._done(_internal.delete_rows(newest, self._filter(predicate), arguments, encoding))

    @overload
    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: Filter | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: None = None,
    ) -> Metrics: ...
    @overload
    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: Filter | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: CommitProperties | None,
    ) -> Metrics | AlreadyApplied: ...
    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: Filter | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> Metrics | AlreadyApplied:
        """Assigns new values to columns of the rows for which `predicate` is true; without a predicate, of all rows.

        Values are computed from the old values of the row. Partition columns may be changed. Generated columns that are
        not assigned are computed again.

        If the assigned value is a column or a literal, it is stored unchanged or refused, as in an append: `2.5001`
        does not fit a `decimal(10,2)`. The result of a computation is cast to the type of its column, which rounds it
        as in Spark: `price * 1.1` and `CAST(2.5001 AS DECIMAL(10,2))` fit. A string literal is cast as well, and a
        struct must have all fields of its column.

        Args:
            updates: values in SQL by column, such as `{"price": "price * 1.1"}`.
            new_values: Python values by column, such as `{"price": 150.1}`. Pass either this or `updates`. A list
                becomes an array; a dict becomes a map or a struct, depending on the type of the column.
            predicate: SQL, or tuples as in `files()`.
            writer_properties: how new files are encoded, as for `write_deltalake`.
            error_on_type_mismatch: refused unless true. A value that does not fit its column is always an error.
            commit_properties: what to record with the commit.
        """
        _ensure_strict(error_on_type_mismatch)
        arguments, encoding = commit_arguments(commit_properties), file_format_argument(writer_properties)
        newest = self._newest_to_change()
        condition = self._filter(predicate)
        values = list(_values(updates, new_values, Schema._of(newest.schema_json)).items())
        return self._done(_internal.update_rows(newest, values, condition, arguments, encoding))

    @overload
    def merge(
        self,
        source: ArrowData,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        commit_properties: None = None,
    ) -> TableMerger[Metrics]: ...
    @overload
    def merge(
        self,
        source: ArrowData,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        commit_properties: CommitProperties | None,
    ) -> TableMerger[Metrics | AlreadyApplied]: ...
    def merge(
        self,
        source: ArrowData,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> TableMerger[Any]:
        """Begins a MERGE. The returned object has methods for its clauses and its execution.

            merge = table.merge(updates, "target.id = source.id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()

        Rows match if `predicate` is true. If the predicate contains equalities between a value of the table and a value
        of the source, joined by AND, they are evaluated by hashing, and files of the table that cannot contain a match
        are skipped. NULL never equals anything; use `<=>` to match NULL with NULL. If several rows of the source match
        one row of the table, the MERGE is refused, unless the only clause for rows with a match is a DELETE without a
        condition.

        Values are stored as in `update`: a value of a source column is stored unchanged, or the MERGE is refused.

        `execute()` merges into the version that is the newest at that time. If the rows of the source were computed
        from an older version, they do not include later changes by other writers. Such changes raise
        `CommitConflictError` only if the source is a `DeltaTable` for this table, or a stream of its `to_arrow()`.

        Args:
            source: anything with the Arrow stream interface (a pyarrow table, a polars frame, a reader). It is read
                once and held in memory; the table is not.
            predicate: SQL such as `"target.id = source.id AND source.day > target.day"`.
            source_alias: the name of the source in SQL; `source` if None.
            target_alias: the name of the table; `target` if None.
            merge_schema: adds columns of the source that the table lacks, in the same commit, and widens types if the
                table allows it. Otherwise expressions can use such columns, but they are not stored.
            error_on_type_mismatch: refused unless true. A value that does not fit its column is always an error.
            writer_properties: how new files are encoded, as for `write_deltalake`.
            streamed_exec: accepted for compatibility with `deltalake`; has no effect.
            max_spill_size: likewise.
            max_temp_directory_size: likewise.
            commit_properties: what to record with the commit.
        """
        _ensure_strict(error_on_type_mismatch)
        for name, size in (
            ("max_spill_size", max_spill_size),
            ("max_temp_directory_size", max_temp_directory_size),
        ):
            size_argument(size, name)
        stream, arguments = stream_argument(source, "source"), commit_arguments(commit_properties)
        encoding = file_format_argument(writer_properties)

        def run(merge: MergeArguments) -> Metrics | AlreadyApplied:
            newest = self._newest_to_change()
            rows = stream._snapshot.scan() if isinstance(stream, TableHandle) else stream
            return self._done(_internal.merge_rows(newest, rows, merge, arguments, encoding, merge_schema))

        # Such a source is an iterator, or a reader from pyarrow or another library. If it were read again, it would
        # return no rows.
        reads_once = isinstance(source, Iterator) or hasattr(source, "read_next_batch")
        return TableMerger(run, predicate, source_alias, target_alias, reads_once=reads_once)

    def _done(self, done: tuple[dict[str, int], list[int]] | AlreadyApplied) -> Metrics | AlreadyApplied:
        """Records the versions that a statement has committed, and returns its metrics."""
        if isinstance(done, AlreadyApplied):
            return done
        metrics, versions = done
        self._has_committed(*versions)
        return Metrics(metrics)


def _ensure_strict(error_on_type_mismatch: bool) -> None:
    if not error_on_type_mismatch:
        refused = UnsupportedFeatureError("error_on_type_mismatch cannot be False")
        raise hinted(refused, "cast the values, with TRY_CAST if values that do not fit should become NULL")


def _values(updates: Mapping[str, str] | None, new_values: object, schema: Schema) -> dict[str, str]:
    """Returns the values of an update in SQL, by column."""
    if isinstance(new_values, str):
        refused = InvalidArgumentError(f"new_values cannot be the string {shown(new_values)}")
        raise hinted(refused, f"pass a condition by name: predicate={shown(new_values)}")
    if (updates is None) == (new_values is None):
        refused = InvalidArgumentError("an update needs either updates or new_values")
        raise hinted(
            refused, "pass updates, values in SQL by column, or new_values, values of Python by column"
        )
    if updates is not None:
        return sql_values(updates)
    if not isinstance(new_values, Mapping) or not all(map(is_text, new_values)):
        raise wrong_argument("new_values", new_values, "values by column, such as {'price': 150.1}")
    kinds = {field.name.lower(): field.type for field in schema.fields}
    try:
        return {
            name: value_as_sql(value, kinds.get(_unquoted(name)), name) for name, value in new_values.items()
        }
    except RecursionError as error:
        raise wrong_argument("new_values", new_values, "values that do not contain themselves") from error


def _unquoted(name: str) -> str:
    """Returns the name of a column in lower case, without backticks."""
    is_quoted = len(name) > 1 and name[0] == name[-1] == "`"
    return (name[1:-1].replace("``", "`") if is_quoted else name).lower()
