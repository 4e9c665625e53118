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
    """A write whose files Spark writes. It is checked before Spark writes, and committed afterwards."""

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

        Returns None if the mode is `ignore` and the table exists. Returns an `AlreadyApplied` if the table has already
        recorded the version of the application in `app_transaction`.

        `base` is the snapshot of the table at `uri` from which the data were read. If Spark's plan reads several
        versions of that table, it is the oldest of them. With a base, an overwrite replaces the files of exactly that
        version: if another commit has since added or removed files, or changed the protocol or the metadata, the
        overwrite raises `CommitConflictError`. An append without `reads` does not depend on the rows that were read: it
        is committed on top of the newest version. Without a base, an overwrite replaces the version that is the newest
        when `begin` is called. The write uses the storage options and the allowed roots of the base. A base that is a
        snapshot of another table raises `InvalidArgumentError`.

        `schema_json` is the schema of the caller's data, which becomes the schema of a new table. For an existing
        table, it is only checked for columns that can never be stored (void, intervals, names that differ only in
        case); the caller then converts the data to `table_schema_json`.

        `mode` is `append`, `overwrite`, `ignore` or `errorifexists`. `partition_overwrite` is `static` or
        `dynamic`: an overwrite replaces all rows, or only the partitions for which there are new rows. `replace_where`
        has three values: a predicate in SQL, the time zone for its times without a zone (empty if the zone is unknown;
        then there must be no such times), and whether new rows must meet the predicate. An overwrite then replaces the
        rows for which the predicate is true, and `checks` includes it as another constraint.

        `reads` are the filters with which Spark's plan reads the base (an empty filter for all rows), and the time zone
        for their times. An append and an overwrite of some rows then depend on the rows of the base for which one of
        the filters is true: a commit since the base that changes them, or adds such rows, is a conflict.

        With `schema_mode` `merge` or `overwrite`, the same commit adds columns of the data to the table, or gives the
        table the schema of the data; `table_schema_json` is then the new schema.
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

        If no files are reported, the write creates a table without rows. `token` raises an error for a write that this
        method has begun.
        """
    @property
    def location(self) -> str:
        """The table's root, as a URL. New files go below it, under unused names that do not begin with `_` or `.`."""
    def add_reports(self, reports: bytes) -> None:
        """Adds the reports of the tasks of a Spark job, as `FileJob.java` returns them."""
    def ensure_evaluable(self) -> None:
        """Raises an error if the core cannot evaluate the expression of a constraint or generated column, because tasks
        that write rows with the core could then not enforce this rule.
        """

    @property
    def computes_columns(self) -> bool:
        """Whether the table has generated or identity columns, whose values are computed for rows without them."""
    @property
    def identity_columns(self) -> list[tuple[str, bool]]:
        """The names of the identity columns, and whether rows may provide values for each of them."""
    def identity_values(self, given: Sequence[str]) -> list[tuple[str, int, int]]:
        """Returns the name, first value and step of each identity column that is not in `given`, the columns of the
        rows.

        The engine gives each row the value `first + k * step`, where `k` is different for each row and at least 0. The
        commit reads the high water mark from the files of jobs that report after this call. Raises
        `SchemaMismatchError` if `given` contains a column that is always generated.
        """
    def end_identity_values(self) -> None:
        """Declares that the tasks of later jobs do not generate values of identity columns."""

    @property
    def checks(self) -> list[tuple[str, str]]:
        """The conditions that every row must meet: the name and the condition in Spark's SQL."""
    @property
    def generated_columns(self) -> list[tuple[str, str]]:
        """The generated columns: the name and the expression in Spark's SQL."""
    @property
    def partition_columns(self) -> list[str]:
        """The names of the table's partition columns.

        Spark partitions the rows by the values of these columns as strings, written as in the log. The columns that
        contain the strings have the names in `directory_columns`, or in `physical_partition_columns` if that is None.
        """
    @property
    def physical_partition_columns(self) -> list[str]:
        """The names of the partition columns in the log."""
    @property
    def directory_columns(self) -> list[str] | None:
        """The names that Spark uses for the partition columns in directory names, if the files themselves also contain
        these columns (under their physical names, after all other columns). Otherwise None.
        """
    @property
    def physical_schema_json(self) -> str | None:
        """The table's schema with the names and the field ids that its columns have in files; None if the table has no
        column mapping.
        """
    def lacks_void(self) -> bool:
        """Returns whether the table has void columns, or void fields of structs, which are not stored in files.

        Raises `SchemaMismatchError` if files cannot store the rows of the table.
        """
    @property
    def parquet_options(self) -> dict[str, str]:
        """The options of Spark's Parquet writer that the table requires: the codec and the Bloom filters."""

    @property
    def table_schema_json(self) -> str | None:
        """The existing table's schema; None if the write creates the table."""
    @property
    def optimizes_writes(self) -> bool:
        """Whether the table's property `delta.autoOptimize.optimizeWrite` is true."""
    @property
    def target_file_size(self) -> int:
        """The target size of the table's files in bytes."""
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
        if there is nothing to commit: no new rows, no replaced rows, no version of an application, and no change of the
        table itself. If a report does not fit the table, or this process cannot see a file in the table's location, the
        files are deleted, nothing is committed, and an error is raised.
        """
    def abort(self) -> None:
        """Deletes the reported files. Must not be called after `commit`."""
    def token(self) -> bytes:
        """Returns this write as bytes that other processes pass to `resume` or `delete`. The bytes contain no
        credentials.
        """
    def task(self) -> WriteTask:
        """Returns the data that tasks need to write files of this write."""
    @staticmethod
    def resume(
        token: bytes,
        storage_options: Mapping[str, str] | None = None,
        app_transaction: tuple[str, int] | None = None,
    ) -> SparkWrite:
        """Restores a write from the bytes that `token` has returned, so that this process can commit or abort it.

        `app_transaction` is the application's version that the write records, if it was not known when the write began.
        """
    def commit_fragments(
        self,
        fragments: Iterable[Fragment],
        operation: str,
        parameters: Mapping[str, str],
        engine_info: str,
        user_metadata: str | None = None,
    ) -> int | AlreadyApplied | None:
        """Commits the files that the tasks have written, as `DistributedWrite.commit` does. If nothing would change,
        commits nothing.

        On any error except `CommitStateUnknownError`, all files of the write are deleted.
        """
    @staticmethod
    def delete(token: bytes, storage_options: Mapping[str, str] | None = None) -> None:
        """Deletes all files of a write that was not committed."""
