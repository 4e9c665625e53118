"""A write that Spark carries out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import final

from deltalog._internal.commit_arguments import AlreadyApplied
from deltalog._internal.distributed import Fragment, WriteTask
from deltalog._internal.snapshot import Snapshot
from deltalog.arguments import StoreOptions, TableOptions
from deltalog.spark.write.compaction import AutoCompaction

@final
class SparkWrite:
    """A write that Spark carries out. It is checked before Spark writes and committed afterwards."""

    @staticmethod
    def begin(
        uri: str,
        schema_json: str,
        mode: str,
        options: TableOptions,
        storage_options: StoreOptions | Mapping[str, str] | None = None,
        base: Snapshot | None = None,
        partition_overwrite: str = "static",
        app_transaction: tuple[str, int] | None = None,
        replace_where: tuple[str, str, bool] | None = None,
        schema_mode: str | None = None,
        reads: tuple[list[str], str] | None = None,
    ) -> SparkWrite | AlreadyApplied | None:
        """Checks a write before any file is written.

        Returns None if there is nothing to do, because the mode is `ignore` and the table exists, and an
        `AlreadyApplied` if the table has recorded the version of the application that `app_transaction` names.

        `base` is the snapshot of the table at `uri` that the data were read from; if the plan reads several versions of
        that table, the oldest. With a base, an overwrite replaces the files of exactly that version: if another commit
        has since added or removed files, or changed the protocol or the metadata, the overwrite raises
        `CommitConflictError`. An append without `reads` does not depend on what was read: it is committed on top of the
        newest version. Without a base, an overwrite replaces the version that is the newest when `begin` is called. The
        write uses the storage options and the allowed roots of the base. A base that is a snapshot of another table
        raises `InvalidArgumentError`.

        `schema_json` is the schema of the caller's data, which becomes the schema of a new table. For an existing
        table, it is only checked for what can never be stored (void, intervals, names that differ only in case);
        the caller then converts the data to `table_schema_json`.

        `mode` is `append`, `overwrite`, `ignore` or `errorifexists`. `partition_overwrite` is `static` or
        `dynamic`: an overwrite replaces all rows, or the rows of the partitions that get new ones. `replace_where`
        is a predicate in SQL, the time zone of its times without one (empty if it is unknown, and then there must
        be none), and whether new rows must meet it: an overwrite then replaces the rows for which it is true, and
        `checks` has it as one more constraint.

        `reads` are the filters with which the plan reads the base, an empty one for all rows, and the time zone of
        their times. An append and an overwrite of some rows then depend on the rows of the base for which one of the
        filters is true: a commit since the base that changes them, or adds such rows, is a conflict.

        With `schema_mode` `merge` or `overwrite`, the table gets columns of the data or the schema of the data in the
        same commit; `table_schema_json` is then the new schema.
        """
    @staticmethod
    def define(
        uri: str,
        schema_json: str,
        mode: str,
        options: TableOptions,
        storage_options: Mapping[str, str] | None = None,
        cluster_by: Sequence[str] | None = None,
        base: Snapshot | None = None,
        app_transaction: tuple[str, int] | None = None,
    ) -> SparkWrite | AlreadyApplied | None:
        """Checks a write that creates or replaces a table from a definition; see `deltalog.DeltaTable.create`.

        If no files are reported, the write creates a table without rows. Such a write cannot be serialized as a token.
        """
    @property
    def location(self) -> str:
        """The table's root, as a URL. Files may have any new names below it that do not begin with `_` or `.`."""
    def add_reports(self, reports: bytes) -> None:
        """Adds the reports of the tasks of Spark's job, in the form that `FileJob.java` returns."""
    def ensure_evaluable(self) -> None:
        """Refuses a table with rules that tasks cannot enforce if they write rows with the core.

        These are expressions that the core cannot evaluate, and identity columns.
        """

    @property
    def computes_columns(self) -> bool:
        """Whether the table has generated or identity columns, whose values are computed if the rows lack them."""
    @property
    def identity_columns(self) -> list[tuple[str, bool]]:
        """The names of the identity columns, and whether rows may have values for them."""
    def identity_values(self, given: Sequence[str]) -> list[tuple[str, int, int]]:
        """Returns name, first value and step of the identity columns that rows with the columns `given` lack.

        The engine gives each row the value `first + k * step`, where `k` is different for each row and at least 0. The
        commit reads the high water mark from the files of jobs that report after this call. Raises
        `SchemaMismatchError` if a column is given that is always generated.
        """
    def end_identity_values(self) -> None:
        """Declares that jobs whose tasks report from now on do not generate values of identity columns."""

    @property
    def checks(self) -> list[tuple[str, str]]:
        """The conditions that every row must meet: the name and the text in Spark's SQL."""
    @property
    def generated_columns(self) -> list[tuple[str, str]]:
        """The generated columns: the name and the expression in Spark's SQL."""
    @property
    def partition_columns(self) -> list[str]:
        """Spark must partition the rows by each of these columns, as text in the log's form.

        The columns of that text have the names of `directory_columns`, or else of `physical_partition_columns`.
        """
    @property
    def physical_partition_columns(self) -> list[str]:
        """The names that the partition columns have in the log."""
    @property
    def directory_columns(self) -> list[str] | None:
        """The names of the columns with the text of the partition values, if the files also contain the partition
        columns (under their physical names, after all other columns). Otherwise None.
        """
    @property
    def physical_schema_json(self) -> str | None:
        """With column mapping, the table's schema with the names and the field ids that files must have; otherwise
        None.
        """
    def lacks_void(self) -> bool:
        """Returns whether files lack columns of the table, or fields of structs, because they are void.

        Raises `SchemaMismatchError` for a table with rows that files cannot hold.
        """
    @property
    def parquet_options(self) -> dict[str, str]:
        """The options of Spark's Parquet writer for the Bloom filters that the table defines."""

    @property
    def table_schema_json(self) -> str | None:
        """The existing table's schema; None if the write creates the table."""
    @property
    def optimizes_writes(self) -> bool:
        """Whether the table's property `delta.autoOptimize.optimizeWrite` is true."""
    @property
    def target_file_size(self) -> int:
        """The size in bytes that the files of the table are to have."""
    def commit(
        self,
        operation: str,
        parameters: Mapping[str, str],
        engine_info: str,
        user_metadata: str | None = None,
        auto_compaction: AutoCompaction | None = None,
    ) -> int | AlreadyApplied | None:
        """Commits the files that were reported and returns the version.

        Small files are compacted afterwards in a separate version, if the settings or the table request it.

        If another writer records the version of the application first, the files are deleted, and an
        `AlreadyApplied` is returned. Returns None if another writer has created the table and the mode is `ignore`, or
        if there is nothing to commit: no rows, no rows that are replaced, no version of an application, and no change
        of the table itself. A report that does not fit the table, or a file that is not in the table's location as this
        process sees it, is an error: the files are deleted, and nothing is committed.
        """
    def abort(self) -> None:
        """Deletes the reported files. Must not be called after `commit`."""
    def token(self) -> bytes:
        """Returns this write as bytes that other processes pass to `resume` or `delete`. It holds no credentials."""
    def task(self) -> WriteTask:
        """Returns the data that tasks need to write files of this write."""
    @staticmethod
    def resume(
        token: bytes,
        storage_options: Mapping[str, str] | None = None,
        app_transaction: tuple[str, int] | None = None,
    ) -> SparkWrite:
        """Returns the write that `token` stands for, to be committed or aborted in another process.

        `app_transaction` is the progress that it records, if that was not known when it began.
        """
    def commit_fragments(
        self,
        fragments: Iterable[Fragment],
        operation: str,
        parameters: Mapping[str, str],
        engine_info: str,
        user_metadata: str | None = None,
    ) -> int | AlreadyApplied | None:
        """Commits what the tasks have written, as `DistributedWrite.commit` does. If nothing changes, commits nothing.

        On any error but `CommitStateUnknownError`, all files of the write are deleted.
        """
    @staticmethod
    def delete(token: bytes, storage_options: Mapping[str, str] | None = None) -> None:
        """Deletes all files of a write that is not committed."""
