"""A table at one version."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, final

from deltalog._internal.handle import Commits
from deltalog._internal.spark_changes import SparkChanges
from deltalog._internal.spark_plan import SparkPlan
from deltalog._internal.stream import ArrowStream
from deltalog.arguments import ChangeRange, StoreOptions

@final
class Snapshot:
    """A table at one version. The object is immutable, and threads may share it."""

    @staticmethod
    def open(
        uri: str,
        version: int | None = None,
        timestamp_ms: int | None = None,
        storage_options: StoreOptions | Mapping[str, str] | None = None,
        staged_commits: Sequence[str | tuple[int, bytes]] | None = None,
        allowed_roots: Sequence[str] | None = None,
        table_id: str | None = None,
        max_age: timedelta | None = None,
    ) -> Snapshot:
        """Opens a table. `table_id` is the id that the table had when it was opened before. If the table now has a
        different id, raises `TableReplacedError`.
        """
    def at_version(self, version: int) -> Snapshot:
        """Opens another version of the same table, with the same storage options."""
    @property
    def uri(self) -> str:
        """The table's location as a URL without trailing slash, such as `file:///data/my%20table`."""
    @property
    def allowed_roots(self) -> list[str]:
        """The URLs of directories that may contain data files in addition to the table's own location."""
    @property
    def version(self) -> int: ...
    @property
    def timestamp_ms(self) -> int:
        """The time at which this version was committed, in milliseconds since the epoch."""
    @property
    def schema_json(self) -> str:
        """The table's schema as in the log: Delta's `schemaString`, which is Spark's JSON form of a `StructType`."""
    @property
    def column_mapping_mode(self) -> str:
        """The column mapping mode: `name` or `id` if columns are found in data files by their physical names or by
        their ids, and `none` if the table has no column mapping.

        The mode is also `none` if the protocol does not require readers to map columns.
        """
    @property
    def physical_schema_json(self) -> str:
        """The schema with the names that columns have in data files, partition values and statistics.

        Its fields correspond to the fields of `schema_json`. In the mode `id`, each field has its id as
        `parquet.field.id` in its metadata, as Spark's Parquet reader expects it, and no other metadata. Without
        column mapping, it is the same as the schema.
        """
    @property
    def row_tracking_columns(self) -> tuple[str, str] | None:
        """The hidden columns of data files for row ids and row commit versions.

        None if row tracking is not enabled.
        """
    @property
    def table_id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...
    @property
    def created_time_ms(self) -> int | None: ...
    @property
    def partition_columns(self) -> list[str]: ...
    @property
    def configuration(self) -> dict[str, str]: ...
    def clustering_columns(self) -> list[list[str]]:
        """The path of each clustering column; the list is empty if the table is not clustered."""
    def create_checkpoint(self) -> None:
        """Writes a checkpoint of this version."""
    @property
    def min_reader_version(self) -> int: ...
    @property
    def min_writer_version(self) -> int: ...
    @property
    def reader_features(self) -> list[str] | None: ...
    @property
    def writer_features(self) -> list[str] | None: ...
    @property
    def table_features(self) -> list[str]:
        """The names of all features, both listed by the protocol and implied by its versions, in order."""
    def refresh(self, staged_commits: Sequence[str | tuple[int, bytes]] | None = None) -> Snapshot:
        """Returns the newest version, reading only the new commits; returns itself if there are none."""
    def after_commit(self, version: int) -> Snapshot:
        """Returns a version that the caller has committed after this one, or a later version with the same rows."""
    def unchanged_since(self, seen: int, own: Sequence[int]) -> int:
        """Returns the last version up to which other writers have made no changes since version `seen`. `own` are the
        versions that the caller has committed.
        """
    def as_base(self, version: int) -> Snapshot:
        """Opens the version on which an overwrite is based. Raises `CommitConflictError` if the log no longer contains
        this version.
        """
    def at(self, version: int | None = None, timestamp_ms: int | None = None) -> Snapshot:
        """Returns another version of the same table: the one with this number, or the newest one at a time."""
    def partitions(self, predicate: str | None = None) -> list[list[str | None]]:
        """Returns the values of the partition columns of each partition; see `DeltaTable.partitions`."""
    def find_commit(self, transaction_id: str) -> int | None:
        """Returns the version of a commit; see `DeltaTable.find_commit`."""
    def num_files(self) -> int: ...
    def size_in_bytes(self) -> int: ...
    def history_json(self, limit: int | None = None) -> list[str]:
        """Returns one JSON object per commit, newest first.

        Each object has `version`, `timestamp` (milliseconds), and the fields of the commit's `commitInfo`.
        """
    def history(self, limit: int | None = None) -> ArrowStream:
        """Returns the history as an Arrow stream, one row per commit; see `DeltaTable.history_arrow`."""
    def commit_actions(self, start: int, end: int | None = None) -> ArrowStream:
        """Returns the actions of each version; see `DeltaTable.commit_actions`."""
    def commits(self, start: int) -> Commits:
        """Returns the commits from a version on; see `DeltaTable.commits`."""
    @property
    def log_retention(self) -> timedelta:
        """The time for which commits are kept."""
    @property
    def deleted_file_retention(self) -> timedelta:
        """The time for which data files are kept after they were removed."""
    def ensure_removable(self) -> None:
        """Raises an error if the table is append-only."""
    def verify(self) -> tuple[str | None, list[str], list[tuple[str, str, str]]]:
        """Compares the version with its checksum; see `DeltaTable.verify`.

        Returns the checksum file, the fields that were compared, and, for each field that differs, its name, its value
        in the checksum file, and its value in the log.
        """
    def clean_up_log(self, dry_run: bool = False) -> list[str]:
        """Deletes the expired part of the log; see `DeltaTable.cleanup_metadata`."""
    def compact_log(self, start: int, end: int) -> bool:
        """Writes a compaction of the log, and returns whether it was written; see `DeltaTable.compact_logs`."""
    def domain_metadata(self) -> dict[str, str]: ...
    def transaction_versions(self) -> dict[str, int]: ...
    def files(self, columns: Sequence[str] | None = None, predicate: str | None = None) -> ArrowStream:
        """Returns the live files, one row per file; see `DeltaTable.files`."""
    def file_uris(self, predicate: str | None = None) -> list[str]: ...
    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        row_ids: bool = False,
        view_types: bool = False,
        is_chosen: bool = False,
        limit: int | None = None,
        ordered: bool = False,
        batch_rows: int | None = None,
        threads: int | None = None,
    ) -> ArrowStream:
        """Returns the rows; see `DeltaTable.to_arrow`.

        If the rows are appended to the same table or overwrite it, the write is based on the version that was read, and
        conflicts with later commits that change the rows that were read. This does not apply if the caller chose the
        version (`is_chosen`).
        """
    def count(self, predicate: str | None = None, time_zone: str = "UTC") -> int:
        """Returns the number of rows; see `DeltaTable.count`.

        Times without a zone are in the zone `time_zone`, in this method and the following ones.
        """
    def count_by_partition(self, predicate: str | None = None, time_zone: str = "UTC") -> ArrowStream:
        """Returns the number of rows of each partition; see `DeltaTable.count_by_partition`."""
    def min_max(
        self, column: str, predicate: str | None = None, time_zone: str = "UTC"
    ) -> tuple[Any, Any] | None:
        """Returns the minimum and the maximum of a column if the log has them; see `DeltaTable.min_max`."""
    def bounds(self, columns: Sequence[str], predicate: str | None = None) -> list[tuple[Any, Any] | None]:
        """Returns the minimum and the maximum of each column; see `DeltaTable.bounds`."""
    def scan_size(self, predicate: str | None = None) -> tuple[int, int, int | None]:
        """Returns the number of files, bytes and rows to read; see `DeltaTable.scan_size`."""
    def changes(
        self,
        versions: ChangeRange,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        allow_out_of_range: bool = False,
    ) -> ArrowStream:
        """Returns the rows that were changed in a range of versions; see `DeltaTable.load_cdf`."""
    def plan_spark(self, filter_sql: str, time_zone: str) -> SparkPlan:
        """Returns the files that may contain rows for which `filter_sql` is true.

        `filter_sql` is the SQL of the filters that Spark has pushed down; it may be empty. Conjuncts that are not
        supported are ignored, so that no matching file is left out.
        """

    def spark_answers(self, filter_sql: str, time_zone: str, columns: Sequence[str]) -> bytes | None:
        """Returns one packed row per partition that has rows and is not excluded by `filter_sql`.

        A row contains the partition values, the number of rows, and the minimum and maximum of each of `columns`. The
        Java classes of `deltalog.spark` unpack the rows. Returns None if the log does not contain all of these values
        exactly.
        """

    def spark_changes(self, versions: ChangeRange) -> SparkChanges:
        """Returns the files of a change data feed, which Spark's own scan reads."""

    def scan_partitions(
        self,
        filter_sql: str,
        n: int,
        row_ids: bool = False,
        positions: bool = False,
        columns: Sequence[str] | None = None,
        condition: tuple[str, str] | None = None,
    ) -> list[bytes]:
        """Divides the files that may contain rows for which `filter_sql` is true into at most `n` fragments of about
        the same size in bytes. `read_fragment` reads the rows of a fragment.

        With `row_ids`, the rows include their ids and commit versions. With `positions`, they include the number of
        their file (`__deltalog_file`) and their position in the file (`__deltalog_row`), which a `StatementTask`
        expects. `columns` are the columns to read; None for all columns of the table. `condition` is another filter
        that only skips files, and the time zone for its times. A fragment contains the table's location, schema and
        files, but no credentials.
        """
    def scan_tasks(
        self,
        n: int,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        ordered: bool = False,
    ) -> list[tuple[bytes, int, int, int | None]]:
        """Divides a scan into at most `n` parts; see `DeltaTable.scan_tasks`.

        Each part consists of the argument for `read_fragment`, the number of its files, their size in bytes, and the
        number of their rows, or None if the log does not state it for all of these files.
        """

def forget_snapshots() -> None:
    """Drops the snapshots that this process caches, so that the next table is opened as in a new process.

    For benchmarks.
    """
