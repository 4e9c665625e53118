"""The binary under the package: a thin layer over the Rust crate. Use `deltalog`, not this."""

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, final

from deltalog.arguments import ChangeRange, StoreOptions, TableOptions
from deltalog.clone import CloneArguments
from deltalog.commit import CommitArguments, WriteArguments
from deltalog.convert import ConvertArguments
from deltalog.credentials import CredentialProvider
from deltalog.spark.dml.text import StatementText
from deltalog.spark.write.compaction import AutoCompaction
from deltalog.table.merge import MergeArguments
from deltalog.table.stream import StreamArguments, StreamLimits
from deltalog.table.vacuum import VacuumArguments

__all__ = [
    "AccessDeniedError",
    "AlreadyApplied",
    "ArrowStream",
    "Commit",
    "CommitConflictError",
    "CommitStateUnknownError",
    "Commits",
    "CommittedInterrupt",
    "ConversionPlan",
    "CorruptDataError",
    "CorruptLogError",
    "DeltaError",
    "DistributedWrite",
    "Fragment",
    "InternalError",
    "InvalidArgumentError",
    "MissingFileError",
    "NotATableError",
    "Recent",
    "SchemaMismatchError",
    "Snapshot",
    "SparkBatch",
    "SparkChanges",
    "SparkClone",
    "SparkOptimize",
    "SparkPlan",
    "SparkStatement",
    "SparkWrite",
    "StatementFragment",
    "StatementTask",
    "TableAlreadyExistsError",
    "TableChange",
    "TableReplacedError",
    "TableStream",
    "UnavailableError",
    "UnknownCommitInterrupt",
    "UnsupportedFeatureError",
    "VacuumPlan",
    "VersionNotFoundError",
    "WriteTask",
    "__version__",
    "alter_table",
    "begin_write",
    "cache_statistics",
    "canonical_uri",
    "check_files",
    "check_store",
    "clone_table",
    "create_table",
    "default_value",
    "delete_rows",
    "drop_feature",
    "evaluate",
    "expression_bytes",
    "forget_snapshots",
    "function_names",
    "generate_manifests",
    "merge_rows",
    "optimize",
    "plan_conversion",
    "plan_vacuum",
    "read_fragment",
    "recompute_statistics",
    "register_log_store",
    "repair",
    "restore",
    "rule_functions",
    "run_upkeep_in_background",
    "schema_from_arrow",
    "schema_to_arrow",
    "table_exists",
    "update_rows",
    "wait_for_upkeep",
    "write_stream",
]

__version__: str

from deltalog.errors import AccessDeniedError as AccessDeniedError
from deltalog.errors import CommitConflictError as CommitConflictError
from deltalog.errors import CommitStateUnknownError as CommitStateUnknownError
from deltalog.errors import CommittedInterrupt as CommittedInterrupt
from deltalog.errors import CorruptDataError as CorruptDataError
from deltalog.errors import CorruptLogError as CorruptLogError
from deltalog.errors import DeltaError as DeltaError
from deltalog.errors import InternalError as InternalError
from deltalog.errors import InvalidArgumentError as InvalidArgumentError
from deltalog.errors import MissingFileError as MissingFileError
from deltalog.errors import NotATableError as NotATableError
from deltalog.errors import SchemaMismatchError as SchemaMismatchError
from deltalog.errors import TableAlreadyExistsError as TableAlreadyExistsError
from deltalog.errors import TableReplacedError as TableReplacedError
from deltalog.errors import UnavailableError as UnavailableError
from deltalog.errors import UnknownCommitInterrupt as UnknownCommitInterrupt
from deltalog.errors import UnsupportedFeatureError as UnsupportedFeatureError
from deltalog.errors import VersionNotFoundError as VersionNotFoundError

@final
class AlreadyApplied:
    """A write that had no effect, because its application has recorded its version or a later one before.

    Protocol: "Transaction Identifiers". Equal if all properties are.
    """

    @property
    def app_id(self) -> str:
        """The application."""
    @property
    def version(self) -> int:
        """The application's version of the write that was not repeated."""
    @property
    def recorded(self) -> int:
        """The version that the table has recorded for the application."""
    @property
    def table_version(self) -> int:
        """The version of the table in which the record was found."""

@final
class ArrowStream:
    """Record batches that can be taken once, by anything that knows the Arrow PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class TableStream:
    """The rows of a table as a sequence of batches. Offsets are texts, in the form of the JVM connector."""

    def __new__(cls, snapshot: Snapshot, arguments: StreamArguments) -> TableStream: ...
    @property
    def snapshot(self) -> Snapshot:
        """The version whose schema the rows have."""
    def latest(self, start: str | None, limits: StreamLimits) -> str | None:
        """Returns the end of the batch that begins at `start`, or where the stream begins.

        This is `start` itself if there is nothing new.
        """
    def wait(self, start: str | None, limits: StreamLimits, patience: timedelta | None) -> str | None:
        """Does the same, but waits for something new; None if there was nothing, or the stream was closed."""
    def read(self, start: str | None, end: str, columns: Sequence[str] | None) -> ArrowStream:
        """Returns the rows between two offsets."""
    def end_at_newest(self) -> None:
        """Ends the stream at the version that is the newest when it is asked next."""
    def release(self, end: str) -> None:
        """Forgets what is only needed for batches up to this offset."""
    def close(self) -> None:
        """Ends all waits, of any thread."""
    def backlog(self, offset: str) -> tuple[int, int, int]:
        """Returns the versions, files and bytes after an offset, as far as they are known."""
    def newest(self) -> str:
        """Returns the offset after all versions that were seen."""

@final
class TableChange:
    """A change of a table that writes no data. Columns are paths such as `struct.field`."""

    @staticmethod
    def set_properties(properties: Mapping[str, str]) -> TableChange: ...
    @staticmethod
    def unset_properties(names: Sequence[str], if_exists: bool) -> TableChange: ...
    @staticmethod
    def set_name(name: str) -> TableChange: ...
    @staticmethod
    def set_description(description: str) -> TableChange: ...
    @staticmethod
    def add_features(names: Sequence[str]) -> TableChange: ...
    @staticmethod
    def upgrade_protocol(reader: int, writer: int) -> TableChange: ...
    @staticmethod
    def add_columns(schema_json: str, parent: str | None, first: bool, after: str | None) -> TableChange:
        """Adds the fields of a schema, in their order, to the struct at `parent`, or to the table."""
    @staticmethod
    def add_columns_at(columns: Sequence[tuple[str, str | None, bool, str | None]]) -> TableChange:
        """Adds columns, given as schemas of one column with their parent, and whether they are first or after which."""
    @staticmethod
    def replace_columns(schema_json: str) -> TableChange:
        """Makes the fields of a schema the columns of the table, in their order."""
    @staticmethod
    def drop_columns(columns: Sequence[str]) -> TableChange: ...
    @staticmethod
    def rename_column(column: str, name: str) -> TableChange: ...
    @staticmethod
    def move_column(column: str, after: str | None) -> TableChange:
        """Moves a column to the front, or after the field `after` of the same struct."""
    @staticmethod
    def set_nullable(column: str, nullable: bool) -> TableChange: ...
    @staticmethod
    def widen_column(column: str, data_type: str) -> TableChange: ...
    @staticmethod
    def set_column_metadata(column: str, entries: Mapping[str, str | None]) -> TableChange: ...
    @staticmethod
    def set_default(column: str, sql: str) -> TableChange: ...
    @staticmethod
    def drop_default(column: str) -> TableChange: ...
    @staticmethod
    def cluster_by(columns: Sequence[str]) -> TableChange: ...
    @staticmethod
    def add_constraints(constraints: Sequence[tuple[str, str]]) -> TableChange: ...
    @staticmethod
    def drop_constraint(name: str, if_exists: bool) -> TableChange: ...

@final
class Snapshot:
    """A table at one version. Immutable, may be shared by threads."""

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
        """Opens a table. Raises `TableReplacedError` if its id is not `table_id`, the id of the table opened
        before."""
    def at_version(self, version: int) -> Snapshot:
        """Opens another version of the same table, with the same storage options."""
    @property
    def uri(self) -> str:
        """The table's location as a URL without trailing slash, such as `file:///data/my%20table`."""
    @property
    def allowed_roots(self) -> list[str]:
        """Where data files may lie in addition to the table's own location, as URLs."""
    @property
    def version(self) -> int: ...
    @property
    def timestamp_ms(self) -> int:
        """When this version was committed, milliseconds since the epoch."""
    @property
    def schema_json(self) -> str:
        """The table's schema as in the log: Delta's `schemaString`, which is Spark's JSON form of a `StructType`."""
    @property
    def column_mapping_mode(self) -> str:
        """How the columns of data files are found: by `name`, by `id`, or `none` for no column mapping.

        It is also `none` if the protocol does not require readers to map columns.
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
        """The path of each column that the table is clustered by; none if it is not clustered."""
    def create_checkpoint(self) -> None:
        """Writes the checkpoint of the version."""
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
        """The names of all features, those that the protocol lists and those that its versions imply, in order."""
    def refresh(self, staged_commits: Sequence[str | tuple[int, bytes]] | None = None) -> Snapshot:
        """Returns the newest version, and reads only the new commits; returns itself when there is none."""
    def after_commit(self, version: int) -> Snapshot:
        """Returns the version that a caller has committed since this one, or a later one with the same rows."""
    def unchanged_since(self, seen: int, own: Sequence[int]) -> int:
        """Returns the last version before the changes of other writers since `seen`; `own` are the caller's."""
    def as_base(self, version: int) -> Snapshot:
        """Returns the version that an overwrite replaces. It is a conflict if the log no longer has it."""
    def at(self, version: int | None = None, timestamp_ms: int | None = None) -> Snapshot:
        """Returns another version of the same table, or the one that was the newest at a time."""
    def partitions(self, predicate: str | None = None) -> list[list[str | None]]:
        """Returns the values of the partition columns of each partition; see `DeltaTable.partitions`."""
    def find_commit(self, transaction_id: str) -> int | None:
        """Returns the version of a commit; see `DeltaTable.find_commit`."""
    def num_files(self) -> int: ...
    def size_in_bytes(self) -> int: ...
    def history_json(self, limit: int | None = None) -> list[str]:
        """Returns one JSON object per commit, newest first.

        It has `version`, `timestamp` (milliseconds), and the fields of the commit's `commitInfo`.
        """
    def history(self, limit: int | None = None) -> ArrowStream:
        """Returns the same as Arrow; see `DeltaTable.history_arrow`."""
    def commit_actions(self, start: int, end: int | None = None) -> ArrowStream:
        """Returns the actions of each version; see `DeltaTable.commit_actions`."""
    def commits(self, start: int) -> Commits:
        """Returns the commits from a version on; see `DeltaTable.commits`."""
    @property
    def log_retention(self) -> timedelta:
        """How long commits are kept."""
    @property
    def deleted_file_retention(self) -> timedelta:
        """How long data files are kept after they were removed."""
    def ensure_removable(self) -> None:
        """Raises if the table is append-only."""
    def verify(self) -> tuple[str | None, list[str], list[tuple[str, str, str]]]:
        """Compares the version with its checksum; see `DeltaTable.verify`.

        Returns the checksum file, the fields that were compared, and for each that differs its name, its value in
        the checksum and its value in the log.
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
    ) -> ArrowStream:
        """Returns the rows; see `DeltaTable.to_arrow`.

        A write to the same table has read them, unless the caller has chosen the version (`is_chosen`).
        """
    def count(self, predicate: str | None = None, time_zone: str = "UTC") -> int:
        """Returns the number of rows; see `DeltaTable.count`.

        Times without a zone are in `time_zone`, here and below.
        """
    def count_by_partition(self, predicate: str | None = None, time_zone: str = "UTC") -> ArrowStream:
        """Returns the number of rows of each partition; see `DeltaTable.count_by_partition`."""
    def min_max(
        self, column: str, predicate: str | None = None, time_zone: str = "UTC"
    ) -> tuple[Any, Any] | None:
        """Returns the least and the greatest value of a column if the log has them; see `DeltaTable.min_max`."""
    def changes(
        self,
        versions: ChangeRange,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        allow_out_of_range: bool = False,
    ) -> ArrowStream:
        """Returns the rows that versions changed; see `DeltaTable.load_cdf`."""
    def plan_spark(self, filter_sql: str, time_zone: str) -> SparkPlan:
        """Returns the files that may contain rows for which `filter_sql` is true.

        `filter_sql` is Spark's SQL text of the pushed filters, which may be empty. Unsupported conjuncts prune
        nothing.
        """

    def spark_answers(self, filter_sql: str, time_zone: str, columns: Sequence[str]) -> bytes | None:
        """Returns one packed row per partition that has rows and is not excluded by `filter_sql`.

        A row has the partition values, the number of rows, and the minimum and maximum of each of `columns`, in the
        form that the Java classes of `deltalog.spark` read. Returns None if the log does not contain all of these
        values exactly.
        """

    def spark_changes(self, versions: ChangeRange) -> SparkChanges:
        """Returns the files of `changes`, for Spark's own scan."""

    def scan_partitions(
        self,
        filter_sql: str,
        n: int,
        row_ids: bool = False,
        positions: bool = False,
        columns: Sequence[str] | None = None,
        condition: tuple[str, str] | None = None,
    ) -> list[bytes]:
        """Returns the scan of the files that may contain rows for which `filter_sql` is true, for `read_fragment`.

        It consists of at most `n` pieces of about the same number of bytes. With `row_ids`, they include the ids and
        commit versions of rows; with `positions`, the number of each row's file (`__deltalog_file`) and its position
        there (`__deltalog_row`), which a `StatementTask` understands. `columns` are the columns of the table to read,
        if not all; `condition` is another filter with the time zone of its times. A piece contains the table's
        location, schema and files, but no credentials.
        """

def write_stream(
    uri: str,
    stream: Any,
    arguments: WriteArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    base: Snapshot | None = None,
) -> int | AlreadyApplied | None:
    """Writes an Arrow stream and commits it; see `write_deltalake`. `base` as in `SparkWrite.begin`."""

def begin_write(
    uri: str,
    schema_json: str | None,
    arguments: WriteArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    base: Snapshot | None = None,
) -> DistributedWrite | AlreadyApplied | None:
    """Checks a write before any file is written; see `deltalog.begin_write`."""

def alter_table(snapshot: Snapshot, change: TableChange, commit: CommitArguments) -> int:
    """Changes a table, based on `snapshot`. Returns the version that it has then."""

def drop_feature(snapshot: Snapshot, name: str, truncate_history: bool, commit: CommitArguments) -> list[int]:
    """Drops a table feature, based on `snapshot`. Returns the versions of its commits."""

@final
class VacuumPlan:
    """The files that a table no longer needs."""

    @property
    def num_files(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def cutoff_ms(self) -> int: ...
    def paths(self) -> list[str]: ...
    def files(self) -> ArrowStream:
        """Returns the files, one row per file; see `deltalog.VacuumPlan.files`."""
    def delete(self) -> tuple[int, int, int, int]:
        """Deletes the files.

        Returns the number of files and their size, the number of removed directories, and the version.
        """

@final
class ConversionPlan:
    """The table that a directory becomes."""

    @property
    def num_files(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def schema_json(self) -> str: ...
    @property
    def partition_columns(self) -> list[str]: ...
    def paths(self) -> list[str]:
        """Returns the paths of the files, decoded and relative to the table."""
    def files(self) -> ArrowStream:
        """Returns one row per file."""
    def commit(self) -> int | None:
        """Returns the version; None if there is a table by now, and the mode is `ignore`."""

def plan_conversion(
    uri: str,
    arguments: ConvertArguments,
    commit: CommitArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
) -> ConversionPlan | None:
    """Finds the files of a directory, and reads their footers; see `deltalog.plan_conversion`."""

def plan_vacuum(snapshot: Snapshot, arguments: VacuumArguments, commit: CommitArguments) -> VacuumPlan:
    """Finds the files that the newest version no longer needs; see `DeltaTable.vacuum`."""

def delete_rows(
    snapshot: Snapshot, predicate: str | None, commit: CommitArguments, file_format: str | None = None
) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
    """Deletes rows, based on `snapshot`. Returns the metrics, and the versions that were committed."""

def generate_manifests(snapshot: Snapshot) -> tuple[int, int, int]:
    """Writes the manifests of the newest version.

    Returns this version, and how many manifests were written and deleted.
    """

def optimize(
    snapshot: Snapshot,
    predicate: str | None,
    target_size: int | None,
    commit_interval: timedelta | None,
    purges: bool,
    dry_run: bool,
    commit: CommitArguments,
    z_order: tuple[Sequence[str], str] | None = None,
    cluster: tuple[bool, int | None] | None = None,
    check_rows: bool = False,
    file_format: str | None = None,
) -> tuple[dict[str, Any], int | None]:
    """Merges small files into fewer, larger ones, `purges` files, or orders all rows by columns along a curve.

    New rows of a clustered table are clustered; `cluster` says whether all are, and the most bytes of a cube.

    Returns the metrics, and the version of the last commit, if any.
    """

def recompute_statistics(
    snapshot: Snapshot,
    predicate: str | None,
    all_files: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> tuple[dict[str, Any], int | None]:
    """Computes statistics for files that have no statistics or poor ones, or of `all_files`.

    Returns the metrics, and the version of the last commit, if any.
    """

def check_files(snapshot: Snapshot, level: str) -> ArrowStream:
    """Checks the files of a version; see `DeltaTable.check`."""

def repair(
    snapshot: Snapshot,
    removes_damaged: bool,
    drops_files_without_vectors: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> tuple[dict[str, int], list[dict[str, Any]], int | None]:
    """Removes missing files from the table. Returns the metrics, the files, and the version of the commit."""

def restore(
    snapshot: Snapshot,
    earlier: Snapshot,
    timestamp: str | None,
    ignore_missing_files: bool,
    allow_protocol_downgrade: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> tuple[dict[str, int], int | None]:
    """Restores the version of `earlier` as the newest one. Returns the metrics, and the version of the commit."""

def clone_table(
    snapshot: Snapshot, uri: str, arguments: CloneArguments, commit: CommitArguments
) -> tuple[dict[str, int], int | None, list[str]]:
    """Creates a clone. Returns the metrics, the version of the commit, and the roots that its readers must allow."""

def update_rows(
    snapshot: Snapshot,
    values: Sequence[tuple[str, str]],
    predicate: str | None,
    commit: CommitArguments,
    file_format: str | None = None,
) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
    """Gives new values, in SQL, to columns. Returns the metrics, and the versions that were committed."""

def merge_rows(
    snapshot: Snapshot,
    source: object,
    arguments: MergeArguments,
    commit: CommitArguments,
    file_format: str | None = None,
    merge_schema: bool = False,
) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
    """Merges the rows of an Arrow stream. Returns the metrics, and the versions that were committed.

    If the stream is of rows of the table itself, the statement is based on the version of these rows.
    """

def create_table(
    uri: str,
    schema_json: str | None,
    mode: str,
    options: TableOptions,
    commit: CommitArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    stream: Any | None = None,
    cluster_by: Sequence[str] | None = None,
    constraints: Mapping[str, str] | None = None,
    base: Snapshot | None = None,
    file_format: str | None = None,
) -> int | AlreadyApplied | None:
    """Creates or replaces a table, with the rows of an Arrow stream; see `DeltaTable.create`.

    Without `schema_json`, the table has the schema of the stream. A replacement removes the files of exactly `base`, if
    that is given.
    """

@final
class Recent:
    """The newest snapshot of a table, refreshed in the background."""

    def __new__(cls, snapshot: Snapshot) -> Recent: ...
    def snapshot(self, max_age: timedelta) -> Snapshot:
        """Returns a snapshot that was the newest at most `max_age` ago."""

@final
class Commits:
    """The commits of a table, one by one."""

    def __iter__(self) -> Commits: ...
    def __next__(self) -> Commit: ...

@final
class Commit:
    """A commit of a table."""

    @property
    def version(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def info_json(self) -> str | None:
        """The provenance as JSON."""
    def actions(self) -> ArrowStream:
        """Returns its actions, one row each."""

def check_store(uri: str, storage_options: StoreOptions | Mapping[str, str] | None = None) -> None:
    """Checks that the store of `uri` refuses to create what exists, see `deltalog.storage.check`."""

def cache_statistics() -> tuple[int, int, int, int]:
    """Returns hits, misses, and the bytes of each, see `deltalog.storage.cache_statistics`."""

def canonical_uri(uri: str, storage_options: StoreOptions | Mapping[str, str] | None = None) -> str:
    """Returns the URL of a location, which is the same for every spelling. Sends no request to the store."""

def register_log_store(name: str, log_store: Any) -> bool:
    """Registers an object that decides commits under a name, see `deltalog.storage.register_log_store`.

    Returns whether the name is free or belongs to this object.
    """

def table_exists(uri: str, storage_options: StoreOptions | Mapping[str, str] | None = None) -> bool:
    """Returns whether there is a table, readable or not."""

def forget_snapshots() -> None:
    """Forgets the snapshots that the process keeps, so that the next one is opened as in a new process.

    For measurements.
    """

def run_upkeep_in_background(enabled: bool) -> None:
    """Sets whether what follows a commit is done behind it."""

def wait_for_upkeep(timeout: timedelta | None = None) -> bool:
    """Waits for what follows the commits of this process; returns whether it was done in time."""

def schema_to_arrow(json: str) -> Any:
    """Returns an object with `__arrow_c_schema__` for a Delta schema."""

def schema_from_arrow(schema: Any) -> str:
    """Returns the Delta schema, as JSON, of an object with `__arrow_c_schema__`."""

def function_names() -> list[str]:
    """Returns the names of all functions of expressions, in lower case."""

def rule_functions() -> tuple[list[str], list[str]]:
    """Returns the names, in lower case, of the functions that expressions of tables may call.

    The first list has the deterministic functions; the second one has the functions of the time at which the statement
    began.
    """

def expression_bytes() -> int:
    """Returns how many bytes of memory the values of an expression may use at the same time.

    Raises:
        InvalidArgumentError: If the variable `DELTALOG_EXPRESSION_BYTES` is not a size.
    """

def default_value(schema_json: str, sql: str) -> ArrowStream:
    """Returns the column `value` with one row: the default value `sql` of the one column that a schema has.

    Raises InvalidArgumentError if deltalog cannot compute it, or if it is another value in each row. Times without a
    zone are in UTC.
    """

def evaluate(stream: Any, sql: str, time_zone: str) -> ArrowStream:
    """Returns the column `value`: the value of the expression `sql` for each row of an Arrow stream.

    The expression is computed as in constraints of tables. An error in the first batch is raised at once.
    """

def read_fragment(fragment: bytes, storage_options: Mapping[str, str] | None = None) -> ArrowStream:
    """Returns the rows of one piece of a scan, for Spark's workers. It does not carry credentials.

    The columns match the table's, in its order.
    """

@final
class StatementTask:
    """The data that a task of a DELETE, UPDATE or MERGE by several processes needs. It can be pickled, without
    credentials.
    """

    def __new__(cls, json: str) -> StatementTask:
        """Reads the text that a pickled task consists of."""
    @staticmethod
    def begin(
        snapshot: Snapshot,
        statement: str,
        statement_id: str,
        app_transaction: tuple[str, int] | None = None,
    ) -> tuple[StatementTask, AlreadyApplied | None]:
        """Begins `DELETE`, `UPDATE` or `MERGE` on exactly the version of `snapshot`.

        `statement_id`, a UUID, names the directory of new files, and is the `txnId` of the commit. If the application
        has recorded the statement before, there is nothing to do.

        Raises:
            UnsupportedFeatureError: the table has a feature, a rule or a change data feed that tasks cannot write.
            InvalidArgumentError: the table is append-only.
        """
    def run(
        self,
        data: Any,
        storage_options: Mapping[str, str] | None = None,
        credential_provider: CredentialProvider | None = None,
    ) -> StatementFragment:
        """Carries out one task, without a commit. `data` has the rows with marker columns:

        `__deltalog_operation` (bits: 1 the row at the position is removed, 2 the columns of the table are written, 4
        the row at the position matches a row of the source, 8 the clause is one of WHEN NOT MATCHED BY SOURCE), and the
        columns of `Snapshot.scan_partitions`. If it fails, its files are deleted.
        """
    def commit(
        self, snapshot: Snapshot, committing: Any, fragments: Sequence[StatementFragment]
    ) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
        """Commits what all tasks have done, and returns metrics and versions as `SparkStatement.commit` does.

        `committing` is a `deltalog.spark.connect.writer.Committing`. Without deletion vectors, the rows that stay are
        copied here. If it fails for certain, all new files are deleted.
        """
    def delete(self, storage_options: Mapping[str, str] | None = None) -> None:
        """Deletes all files of a statement that was not committed."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...

@final
class StatementFragment:
    """The result of one task of a statement, as plain data. It can be pickled."""

    def __new__(cls, files: str, report: bytes) -> StatementFragment:
        """Reads the parts that a pickled fragment consists of."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...

@final
class WriteTask:
    """The data that a worker needs to write files of a distributed write: the table's location, schema and rules.

    It can be pickled, and holds no credentials.
    """

    def __new__(cls, json: str) -> WriteTask:
        """Reads what `to_json` has returned.

        Raises:
            InvalidArgumentError: the text is anything else, or comes from another version of deltalog.
        """
    @property
    def table_uri(self) -> str:
        """The location of the table, as a URL."""
    @property
    def write_id(self) -> str:
        """The id of the write, which is the directory of its files in the table."""
    def numbered(self, number: int, of: int) -> WriteTask:
        """Returns the task `number` of `of` tasks, counted from 0, which counts values of identity columns of its own.

        For engines that know the number of a worker; see `DistributedWrite.tasks` for the rules. All tasks of a write
        must have the same `of`; tasks that are left out leave gaps in the values.

        Raises:
            InvalidArgumentError: there is no such number.
        """
    def write(
        self,
        data: Any,
        storage_options: Mapping[str, str] | None = None,
        credential_provider: CredentialProvider | None = None,
    ) -> Fragment:
        """Writes `data` as files of the table, and returns the fragment that names them.

        The table's log is not read, and nothing is committed. Columns are matched by name, values are converted or
        refused, and constraints are enforced as by `write_deltalake`. If anything fails, the files are deleted.

        Args:
            data: anything with `__arrow_c_stream__`; memory stays bounded.
            storage_options, credential_provider: options and credentials of the store, because a task carries neither.

        Raises:
            SchemaMismatchError: the data do not fit the table.
            InvalidArgumentError: a row violates a constraint, the data stream failed, or the data lack an identity
                column and the task has no number to count its values by.
            UnavailableError: the store failed.
        """
    def to_json(self) -> str:
        """Returns the task as text, from which `WriteTask(text)` creates it again."""
    def __getnewargs__(self) -> tuple[str]: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class Fragment:
    """The files that one worker has written for a distributed write, as plain data. It can be pickled."""

    def __new__(cls, json: str) -> Fragment:
        """Reads what `to_json` has returned.

        Raises:
            InvalidArgumentError: the text is anything else, or comes from another version of deltalog.
        """
    @property
    def write_id(self) -> str:
        """The id of the write that the files belong to."""
    @property
    def paths(self) -> list[str]:
        """The paths of the files relative to the table, as in the log."""
    @property
    def num_rows(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    def to_json(self) -> str:
        """Returns the fragment as text, from which `Fragment(text)` creates it again."""
    def __getnewargs__(self) -> tuple[str]: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class DistributedWrite:
    """A write whose files come from several processes; see `deltalog.begin_write`.

    It stays in the process that began it. As a context manager it aborts itself if it was not committed.
    """

    @property
    def task(self) -> WriteTask:
        """The data that each worker needs."""
    def tasks(self, count: int) -> list[WriteTask]:
        """Returns `count` tasks, for workers that write rows without the identity columns of the table.

        Each task counts values of its own (protocol: "Identity Columns"). A worker that runs twice counts the same
        values, so at most one fragment of each task can be committed. The values have gaps if the tasks write different
        numbers of rows.

        Raises:
            InvalidArgumentError: the number of tasks is 0.
        """
    def commit(self, fragments: Iterable[Fragment]) -> int | AlreadyApplied | None:
        """Commits the files of all fragments as one version, and deletes the files of the write that none names.

        The fragments are checked first: each must come from a task of this write; its paths, partition values and
        numbers must be those that a worker writes; its files must exist and have the right size; no file may be named
        twice, and no two fragments may have the same values of identity columns. If a check fails, nothing has changed,
        and other fragments may be committed.

        Returns:
            The version that was committed; an `AlreadyApplied` if the table has already recorded this write of an
            application; None if another writer has created the table first, and the mode is `ignore`. The files
            are deleted then.

        Raises:
            InvalidArgumentError: a fragment is not one of this write, or not as a worker has made it.
            MissingFileError: a file of a fragment does not exist.
            CorruptDataError: a file does not have the size that its fragment says.
            CommitConflictError: another writer was faster and the two exclude each other. The files are deleted.
            CommitStateUnknownError: it is not known whether the commit succeeded; `DeltaTable.find_commit` finds out.
                The files are kept, and `abort` refuses to delete them.
        """
    def abort(self) -> None:
        """Deletes all files of the write, also the files of workers that died.

        Raises:
            InvalidArgumentError: the write has ended already, or it is not known whether it was committed.
        """
    def __enter__(self) -> DistributedWrite: ...
    def __exit__(self, exception_type: object, exception: object, traceback: object) -> Literal[False]: ...

@final
class SparkChanges:
    """The files of a change data feed for Spark's scan.

    Their partition values are the table's, then `_commit_version` and `_commit_timestamp`.
    """

    @property
    def snapshot(self) -> Snapshot:
        """The last version, in whose schema the rows are."""
    @property
    def versions(self) -> tuple[int, int] | None:
        """The first and the last version; None if the range has none."""
    def size_in_bytes(self) -> int: ...
    def plan_spark(self, filter_sql: str, time_zone: str) -> SparkPlan:
        """Returns the files that may hold rows for which `filter_sql` is true, as `Snapshot.plan_spark` does."""

@final
class SparkBatch:
    """The files of a batch of a stream for Spark's scan. They are found when they are asked for."""

    def __new__(cls, stream: TableStream, start: str | None, end: str) -> SparkBatch:
        """Checks that the offsets are the stream's, without I/O."""
    def size_in_bytes(self) -> int: ...
    def plan_spark(self, filter_sql: str, time_zone: str) -> SparkPlan:
        """Returns the files that may hold rows for which `filter_sql` is true, as `Snapshot.plan_spark` does."""

@final
class SparkPlan:
    """A file list, packed for the Java side of `deltalog.spark`."""

    @property
    def kept(self) -> int:
        """The number of files in it."""
    @property
    def total(self) -> int:
        """The number of files of the snapshot."""
    def __len__(self) -> int:
        """Its size in bytes."""
    def to_bytes(self) -> bytes: ...
    def write(self, path: str) -> None:
        """Writes it into a file."""

@final
class SparkClone:
    """A CLONE whose data files the tasks of Spark copy; or this process, if that is faster."""

    @staticmethod
    def begin(snapshot: Snapshot, uri: str, arguments: CloneArguments, commit: CommitArguments) -> SparkClone:
        """Plans which files are copied; see `clone_table`."""
    @property
    def files(self) -> int:
        """The number of data files that are copied."""
    @property
    def bytes(self) -> int:
        """Their size in bytes."""
    def tasks(self, parallelism: int) -> SparkPlan:
        """Returns the files that each task copies. There are so many tasks at least, if the files can be divided."""
    def commit(self, told: builtins.bytes) -> tuple[dict[str, int], int | None, list[str]]:
        """Copies the files of vectors, and commits what tasks have copied. Returns as `clone_table` does.

        Args:
            told: 20 bytes for each copy, big endian: i32 number of the file, the 64 bits that the name of the copy has
                as 16 hexadecimal digits, i64 size.

        Raises `CorruptDataError` if the tasks have not done what was planned, and what `clone_table` raises. The copies
        are deleted then.
        """
    def abandon(self) -> None:
        """Deletes what tasks have copied before the job failed, also of those that have told nothing."""
    def execute(self) -> tuple[dict[str, int], int | None, list[str]]:
        """Copies and commits all files in this process; returns the same."""

@final
class SparkOptimize:
    """An OPTIMIZE or REORG whose files Spark writes, batch by batch; or this process, if that is faster."""

    @staticmethod
    def begin(
        snapshot: Snapshot,
        predicate: str | None,
        purges: bool,
        commit: CommitArguments,
        target_size: int | None = None,
        z_order: tuple[Sequence[str], str] | None = None,
        full: bool = False,
    ) -> SparkOptimize:
        """Plans which files are written again; see `optimize`."""
    @property
    def ordering(self) -> tuple[list[list[str]], bool, int] | None:
        """How rows of bins that are ordered are ordered: the parts of the names of the columns, whether the curve is
        Hilbert's, and how many bits a rank has. None if the OPTIMIZE orders none."""
    @property
    def tasks(self) -> int:
        """The number of new files of all batches. Each file is written by one task."""
    @property
    def batches(self) -> int:
        """The number of batches, which are one commit each."""
    @property
    def bins(self) -> int:
        """The number of bins of all batches. The files of a bin become one file, or several if rows are ordered."""
    @property
    def bytes(self) -> int:
        """The size of all files that are written again, in bytes."""
    def files(self, batch: int) -> SparkPlan:
        """Returns the old files of a batch, numbered bin after bin, in the order of their rows in new files."""
    def outputs(self, batch: int) -> list[tuple[int, int, bool, int | None, str, list[str | None]]]:
        """Returns for each bin the number of its old files, the number of its new ones, whether its rows are
        ordered, how many they are with deleted ones, if the log tells, and for the new files the directory and the
        partition values.

        The directory is decoded, relative to the table's root, and ends with a slash unless it is the root.
        """
    def write(self) -> SparkWrite:
        """Begins the write of the files of a batch."""
    def commit(
        self,
        batch: int,
        write: SparkWrite,
        ordered: tuple[Sequence[int], Callable[[builtins.bytes], builtins.bytes | None]] | None = None,
    ) -> int | None:
        """Commits a batch that the tasks of `write` have written, and ends `write`.

        If rows were ordered, `ordered` are the numbers of the rows of each old file that were read, and a function that
        finds rows in the new files. It is given 12 bytes for each row, the big-endian number of the file and the
        position there, and returns 12 bytes for each, the number of the task and the position in its file; None gives
        up.

        Returns the version; None if all bins had to be given up, because other writers have removed their rows.

        Raises `CorruptDataError` if the tasks have not done what was planned, and `CommitConflictError`. The new files
        are deleted then.
        """
    def finish(self) -> tuple[dict[str, Any], int | None]:
        """Returns the metrics, and the version of the last commit, if any."""
    def execute(self) -> tuple[dict[str, Any], int | None]:
        """Writes and commits all files in this process; returns the same."""

@final
class SparkStatement:
    """A DELETE, UPDATE or MERGE whose rows Spark finds and writes."""

    @staticmethod
    def begin(
        snapshot: Snapshot, app_transaction: tuple[str, int] | None = None, data_schema: str | None = None
    ) -> tuple[SparkStatement, SparkWrite] | AlreadyApplied:
        """Begins a statement on exactly `snapshot`, and the write of its files, unless its application has recorded it.

        The table gets the columns that data of `data_schema` have and it lacks.

        Raises `InvalidArgumentError` for a table that is append-only.
        """
    @property
    def uses_vectors(self) -> bool:
        """Whether rows are deleted by deletion vectors. Otherwise their files are rewritten, see `copies`."""
    def plan(
        self,
        filter_sql: str,
        time_zone: str,
        reads_whole_table: bool,
        keeps_matches: bool,
        removed_sql: str | None,
        source_filters: list[str],
    ) -> SparkPlan:
        """Returns the files that may have rows for which the filter is true, each with a number.

        `removed_sql` is a condition that exactly the removed rows meet. Files whose rows all meet
        it, as partition values or statistics show, are removed unread, and are not among the files.

        The transaction has read these rows, or the whole table. With `keeps_matches` rows of these files that stay
        matter to it as well: a commit that deletes rows of them is a conflict. It has also read the rows for which one
        of `source_filters` is true, from which the source of a MERGE was computed; an empty one is true for all rows.
        """
    @property
    def has_feed(self) -> bool:
        """Whether the table has a change data feed."""
    def check_recordable(self) -> None:
        """Raises `UnsupportedFeatureError` if a column has the name of the one for the kind of a change."""
    def rewrites(self, numbers: set[int]) -> SparkPlan:
        """Returns files of the plan by their numbers, whose rows one job writes again, changed or as they are.

        `commit` raises `InvalidArgumentError` if no row of such a file was reported as removed.
        """
    def copies(self, write: SparkWrite, with_removed: bool) -> SparkPlan | None:
        """Returns the files that lose the reported rows, without these rows; None if no row is left.

        With `with_removed`, the removed rows of these and all other files are returned too. There, -1 - n is the number
        of the file n.
        """
    def has_change_files(self, write: SparkWrite) -> bool:
        """Returns whether tasks have reported change data files."""
    def commit(
        self,
        write: SparkWrite,
        text: StatementText,
        engine_info: str,
        user_metadata: str | None,
        source_rows: int,
        removes_once: bool,
        scan_ms: int,
        rewrite_ms: int,
        auto_compaction: AutoCompaction | None = None,
    ) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
        """Commits what the tasks of the write have reported. Returns the metrics and the versions.

        There is none if there was nothing to change. With `removes_once`, a row that two tasks have matched is an
        `InvalidArgumentError`. On any error but `CommitStateUnknownError`, the files are deleted.
        """

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
        """Checks a write that creates or replaces a table by its definition; see `deltalog.DeltaTable.create`.

        Without files it creates a table without rows. It has no token.
        """
    @property
    def location(self) -> str:
        """The table's root, as a URL. Files may have any new names below it that do not begin with `_` or `.`."""
    def add_reports(self, reports: bytes) -> None:
        """Adds what the tasks of Spark's job report to have written, in the form that `FileJob.java` returns."""
    def ensure_evaluable(self) -> None:
        """Refuses a table with rules that tasks cannot keep that write rows with the core.

        These are expressions that the core cannot evaluate, and identity columns.
        """

    @property
    def computes_columns(self) -> bool:
        """Whether the table has generated or identity columns, whose values are computed if the rows lack them."""
    @property
    def identity_columns(self) -> list[tuple[str, bool]]:
        """The names of the identity columns, and whether rows may come with values of them."""
    def identity_values(self, given: Sequence[str]) -> list[tuple[str, int, int]]:
        """Returns name, first value and step of the identity columns that rows with the columns `given` lack.

        The engine gives each row the value `first + k * step` for a `k` of its own, from 0. The commit reads the high
        water mark from the files of jobs that report after this call. Raises `SchemaMismatchError` if a column is given
        that is always generated.
        """
    def end_identity_values(self) -> None:
        """Says that the jobs whose tasks report from now on do not generate values of identity columns."""

    @property
    def checks(self) -> list[tuple[str, str]]:
        """The conditions that every row must meet: the name and the text in Spark's SQL."""
    @property
    def generated_columns(self) -> list[tuple[str, str]]:
        """The generated columns: the name and the expression in Spark's SQL."""
    @property
    def partition_columns(self) -> list[str]:
        """Spark must partition the rows by each as text in the log's form.

        The columns of that text have the names of `directory_columns`, or else of `physical_partition_columns`.
        """
    @property
    def physical_partition_columns(self) -> list[str]:
        """The names that the partition columns have in the log."""
    @property
    def directory_columns(self) -> list[str] | None:
        """The names of the columns with the text of the partition values, if the files have the partition columns too,
        by their physical names and after all others. Else None.
        """
    @property
    def physical_schema_json(self) -> str | None:
        """With column mapping, the table's schema with the names and the field ids that files must have; else None."""
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

        Small files are compacted afterwards if the settings or the table ask for it, in a version of its own.

        If another writer records the version of the application first, the files are deleted, and an
        `AlreadyApplied` is returned. It is None if another writer has created the table, and the mode is `ignore`, and
        if there is nothing to commit: no rows, no rows that are replaced, no version of an application, and no change
        of the table itself. A report that does not fit the table, or a file that is not in
        the table's location as this process sees it, is an error: the files are deleted, and nothing is committed.
        """
    def abort(self) -> None:
        """Deletes the files that were reported. Never called after `commit` was."""
    def token(self) -> bytes:
        """Returns this write in a form for other processes, for `resume` and `delete`. It holds no credentials."""
    def task(self) -> WriteTask:
        """Returns what tasks need to write files of this write."""
    @staticmethod
    def resume(token: bytes, storage_options: Mapping[str, str] | None = None) -> SparkWrite:
        """Returns the write that `token` stands for, to be committed or aborted in another process."""
    def commit_fragments(
        self,
        fragments: Iterable[Fragment],
        operation: str,
        parameters: Mapping[str, str],
        engine_info: str,
        user_metadata: str | None = None,
    ) -> int | AlreadyApplied | None:
        """Commits what the tasks have written, as `DistributedWrite.commit` does, but nothing if nothing changes.

        On any error but `CommitStateUnknownError`, all files of the write are deleted.
        """
    @staticmethod
    def delete(token: bytes, storage_options: Mapping[str, str] | None = None) -> None:
        """Deletes all files of a write that is not committed."""
