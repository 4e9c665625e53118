"""A table at a version, and what can be asked of it."""

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from deltalog import _internal
from deltalog.alter import TableAlterer
from deltalog.arguments import (
    ChangeRange,
    StagedCommit,
    columns_argument,
    limit_argument,
    location_argument,
    options_argument,
    roots_argument,
    staged_argument,
    table_options,
    timestamp_argument,
    version_argument,
)
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.errors import (
    InvalidArgumentError,
    NotATableError,
    UnsupportedFeatureError,
)
from deltalog.filters import Filter, filter_argument
from deltalog.schema import Schema
from deltalog.verification import Verification

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["DeltaTable", "Metadata", "Protocol"]

# Held only while a table goes from one snapshot to another, never during I/O; a forked child gets it free.
_swap = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_swap.acquire, after_in_parent=_swap.release, after_in_child=_swap.release)


@dataclass(frozen=True)
class Metadata:
    """The table's metadata (protocol: "Change Metadata")."""

    id: str
    name: str | None
    description: str | None
    partition_columns: list[str]
    created_time: int | None
    """Milliseconds since the epoch."""
    configuration: dict[str, str]


@dataclass(frozen=True)
class Protocol:
    """What readers and writers of the table must support (protocol: "Protocol Evolution")."""

    min_reader_version: int
    min_writer_version: int
    reader_features: list[str] | None
    writer_features: list[str] | None


class DeltaTable:
    """A table at a version, which stays until `update_incremental()` or `load_as_version()`.

    Threads may share a table. It can be pickled: location, version and allowed roots are, storage options are
    not, so that no secret leaves the process.

    Args:
        table_uri: a path or a `file://` URL.
        version: the version to open; the newest if neither this nor `timestamp` is given.
        timestamp: opens the version that was the newest then; a `datetime` (without a zone: UTC), or ISO 8601
            text. A time before the first commit or after the last is refused.
        storage_options: options of the store; local files have none.
        staged_commits: for a table that a catalog manages (table feature `catalogManaged`), the commits that
            the catalog has accepted and not published yet, or an empty list. Each is the name or path of a
            file in `_delta_log/_staged_commits`, or its version and its bytes. Such a table cannot be opened
            by its path alone.
        allowed_roots: paths or URLs below which data files and deletion vectors may lie, beside the table's
            own location. Those of a shallow clone lie in the table that it was cloned from. A file outside all
            roots is refused.

    Raises:
        NotATableError: there is no table.
        VersionNotFoundError: there is a table, but not that version or time; the message lists the readable
            ones.
        InvalidArgumentError: an argument is not a location, version or time.
        CorruptLogError: the log breaks the protocol; the message tells file and line.
        UnsupportedFeatureError: the table has a feature that deltalog cannot read yet.
    """

    def __init__(
        self,
        table_uri: "str | os.PathLike[str]",
        version: int | None = None,
        timestamp: datetime | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        staged_commits: Iterable[StagedCommit] | None = None,
        allowed_roots: "Iterable[str | os.PathLike[str]] | None" = None,
    ) -> None:
        self._snapshot = _internal.Snapshot.open(
            location_argument(table_uri),
            version_argument(version),
            timestamp_argument(timestamp),
            options_argument(storage_options, "a storage option"),
            staged_argument(staged_commits),
            roots_argument(allowed_roots),
        )
        self._has_catalog = staged_commits is not None

    @staticmethod
    def is_deltatable(
        table_uri: "str | os.PathLike[str]", storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Returns whether there is a Delta table, readable or not. A store that does not answer raises."""
        try:
            _internal.Snapshot.open(
                location_argument(table_uri),
                None,
                None,
                options_argument(storage_options, "a storage option"),
            )
        except NotATableError:
            return False
        except (_internal.UnsupportedFeatureError, _internal.CorruptLogError):
            return True
        return True

    @classmethod
    def create(
        cls,
        table_uri: "str | os.PathLike[str]",
        schema: Any,
        *,
        mode: Literal["error", "ignore"] = "error",
        partition_by: Sequence[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> "DeltaTable":
        """Creates a table without rows and opens it.

        Args:
            table_uri: a path or a `file://` URL.
            schema: a `Schema`, or anything with `__arrow_c_schema__`, such as a `pyarrow.Schema`.
            mode: what to do if there is a table: fail, or open it as it is.
            partition_by: columns to partition by.
            name: name of the new table.
            description: description of the new table.
            configuration: properties of the new table.
            storage_options: options of the store; local files have none.
            commit_properties: what to record with the commit.

        Raises:
            TableAlreadyExistsError: there is a table, and the mode is `error`.
            SchemaMismatchError: a table cannot have this schema or partitioning.
            UnsupportedFeatureError: a property or a type needs a feature that cannot be written yet.
        """
        wanted = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
        options = options_argument(storage_options, "a storage option")
        _internal.create_table(
            location_argument(table_uri),
            wanted.to_json(),
            mode,
            table_options(partition_by, configuration, name, description),
            commit_arguments(commit_properties),
            options,
        )
        return cls(table_uri, storage_options=options)

    @property
    def table_uri(self) -> str:
        """The location of the table, as a URL."""
        return self._snapshot.uri

    def version(self) -> int:
        """Returns the version that is open."""
        return self._snapshot.version

    def schema(self) -> Schema:
        """Returns the table's schema."""
        return Schema._of(self._snapshot.schema_json)

    def metadata(self) -> Metadata:
        """Returns the table's id, name, partitioning and configuration."""
        snapshot = self._snapshot
        return Metadata(
            id=snapshot.table_id,
            name=snapshot.name,
            description=snapshot.description,
            partition_columns=snapshot.partition_columns,
            created_time=snapshot.created_time_ms,
            configuration=snapshot.configuration,
        )

    def clustering_columns(self) -> list[str]:
        """Returns the columns that the table is clustered by, in order; those in structs as `struct.field`.

        The list is empty if the table is not clustered.
        """
        return [".".join(path) for path in self._snapshot.clustering_columns()]

    def protocol(self) -> Protocol:
        """Returns what readers and writers must support."""
        snapshot = self._snapshot
        return Protocol(
            snapshot.min_reader_version,
            snapshot.min_writer_version,
            snapshot.reader_features,
            snapshot.writer_features,
        )

    @property
    def alter(self) -> TableAlterer:
        """The changes of the table that write no data: properties, features, columns and constraints."""
        return TableAlterer(self)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Returns the commits up to this version, newest first, at most `limit`.

        Each is a dictionary with `version`, `timestamp` (milliseconds since the epoch) and the fields that its
        writer recorded, such as `operation`, `operationParameters`, `operationMetrics`, `engineInfo` and
        `userMetadata`. Commits that were cleaned up are left out.
        """
        return [json.loads(entry) for entry in self._snapshot.history_json(limit_argument(limit))]

    def history_arrow(self, limit: int | None = None) -> _internal.ArrowStream:
        """Returns the history as an Arrow stream with one row per commit.

        Columns: `version`, `timestamp`, `operation`, `operation_parameters` and `operation_metrics` (maps of
        text), `user_id`, `user_name`, `user_metadata`, `engine_info`, `txn_id`, `read_version`,
        `isolation_level`, `is_blind_append`, `in_commit_timestamp`, `commit_timestamp` (the writer's clock),
        and `other`: a JSON object with all further fields. A field that a writer did not record is null.
        """
        return self._snapshot.history(limit_argument(limit))

    def commit_actions(self, start: int, end: int | None = None) -> _internal.ArrowStream:
        """Returns the actions of the versions `start` to `end`, both included, as an Arrow stream.

        If `end` is None, it is this version. There is one row per action, in the order of the log. The columns are
        `version`, `timestamp` (when the version was committed), `action` (its name in the log, such as `add`),
        and `json` (the action's content as in the log). File actions also have `path` (as in `files`), `size`,
        `partition_values` (a map of strings), `data_change`, `modification_time` (for a `remove`, when the file
        was removed) and `deletion_vector` (its unique id).

        Raises:
            VersionNotFoundError: a commit was cleaned up, or is not there yet; the message lists the readable
                versions.
            CorruptLogError: a commit is missing among others, or damaged.
        """
        first = version_argument(start)
        if first is None:
            raise InvalidArgumentError("the version to start from is missing")
        return self._snapshot.commit_actions(first, version_argument(end))

    def verify(self) -> Verification:
        """Compares this version, replayed from the log, with its checksum file, if there is one.

        Differences are part of the result; they are not raised.
        """
        return Verification.of(self._snapshot)

    def cleanup_metadata(self, *, dry_run: bool = False) -> list[str]:
        """Deletes the part of the table's log that is older than its retention (protocol: "Metadata Cleanup").

        The retention is the property `delta.logRetentionDuration`, 30 days if it is not set. Versions expire by
        whole days, and only those before a checkpoint are deleted, so that every later version stays readable.
        Data files are not deleted. A commit does the same after it has written a checkpoint, unless the property
        `delta.enableExpiredLogCleanup` is false.

        Args:
            dry_run: delete nothing.

        Returns:
            The paths of the deleted files relative to the table's root; with `dry_run`, of those that would be
            deleted.

        Raises:
            UnsupportedFeatureError: the table cannot be written, a catalog manages it, or its retention is not a
                time span in weeks or smaller units.
        """
        return self._snapshot.clean_up_log(dry_run)

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Writes the commits of a range of versions into one more file (protocol: "Log Compaction Files").

        Readers need that file instead of the commits, which remain. Nothing is written if it exists already.

        Args:
            starting_version: the first version.
            ending_version: the last version.

        Raises:
            InvalidArgumentError: the range has fewer than two versions, ends after the version that is open, or has
                more than 1 GiB of commits.
            VersionNotFoundError: a commit of the range was cleaned up.
            UnsupportedFeatureError: the table cannot be written, or a commit has an action that is not known.
        """
        start, end = version_argument(starting_version), version_argument(ending_version)
        if start is None or end is None:
            raise InvalidArgumentError("the versions to compact are missing")
        self._snapshot.compact_log(start, end)

    def domain_metadata(self) -> dict[str, str]:
        """Returns the configuration of each metadata domain (protocol: "Domain Metadata")."""
        return self._snapshot.domain_metadata()

    def transaction_versions(self) -> dict[str, int]:
        """Returns the newest version that each application has recorded (protocol: "Transaction Identifiers")."""
        return self._snapshot.transaction_versions()

    def transaction_version(self, app_id: str) -> int | None:
        """Returns the newest version that the application has recorded; None if it has recorded none.

        An application records its version with a write: `CommitProperties(app_transactions=[...])`.
        """
        return self._snapshot.transaction_versions().get(app_id)

    def partitions(self, predicate: Filter | None = None) -> list[dict[str, str | None]]:
        """Returns the partitions that have files, one dictionary per partition, in the order of their values.

        Values are text in the form of the log, such as `2024-01-31` or `true`; NULL is None. A table without
        partition columns has no partitions. With a `predicate`, only partitions with a file that may hold a
        matching row are returned.
        """
        snapshot = self._snapshot
        columns = snapshot.partition_columns
        found = snapshot.partitions(self._filter(predicate))
        return [dict(zip(columns, values, strict=True)) for values in found]

    def files(
        self, predicate: Filter | None = None, columns: Sequence[str] | None = None
    ) -> _internal.ArrowStream:
        """Returns the live data files as an Arrow stream with one row per file.

        Only the columns asked for are decoded. They come in the order given.

        Columns: `path` (decoded, relative to the table), `size` (bytes), `modification_time`,
        `partition_values` (a typed struct), `num_records` (of the data file: rows that its deletion vector
        deletes are counted), `stats` (a typed struct of `numRecords, tightBounds, minValues, maxValues,
        nullCount`), `deletion_vector` (a struct of `storage_type, path_or_inline_dv, offset, size_in_bytes,
        cardinality`), `base_row_id` and `default_row_commit_version` (of row tracking).

        With a `predicate` (SQL, such as `"month = 7 AND delay > 60"`), files that cannot hold a matching row
        are left out, by their partition values and statistics.
        """
        return self._snapshot.files(columns_argument(columns), self._filter(predicate))

    def file_uris(self, predicate: Filter | None = None) -> list[str]:
        """Returns the URLs of the live data files; with a `predicate`, of those that may hold a matching row."""
        return self._snapshot.file_uris(self._filter(predicate))

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        predicate: Filter | None = None,
        *,
        row_ids: bool = False,
        view_types: bool = False,
    ) -> _internal.ArrowStream:
        """Returns the rows as an Arrow stream: `pyarrow.table(table.to_arrow())`, `polars.DataFrame(table.to_arrow())`.

        Columns come in the order given. An empty list of columns gives a stream of row counts. With a
        `predicate`, only rows for which it is true are returned; files, row groups and pages that cannot hold
        one are not read. The predicate is SQL as Spark spells it: times without a zone are in UTC, and a
        backslash in a text is doubled. It may compute: arithmetic, casts, CASE, and functions of numbers,
        strings, dates and times have the types and results of Spark in ANSI mode, so that an overflow or a
        division by zero is an error. Tuples such as `[("month", "=", 7)]` are taken as well.

        With `row_ids`, the columns `_row_id` and `_row_commit_version` follow. A row keeps its id when it is
        updated or moved to another file; its commit version is that of the last change to it. Only tables with
        row tracking enabled have them. The predicate may name them, too.

        With `view_types`, strings and bytes are Arrow's `string_view` and `binary_view`, which are not copied.
        This is faster for Polars, DuckDB and other libraries that know them. (Many functions of pyarrow do not
        yet.)

        The rows of a file come in their order. Files come in any order, because several are read at once. (A
        handful of small files is read in the order of the list.)

        The first batch is read here, so that most failures are a `DeltaError` of this call. A later failure is
        raised by the library that consumes the stream, as its own exception with the same words; with pyarrow
        a missing file is an `OSError`, a damaged file a `ValueError`.

        Raises:
            InvalidArgumentError: there is no such column, the predicate does not fit the schema, or the rows
                have no ids.
            MissingFileError: a data file is not there.
            CorruptDataError: a data file cannot be read.
        """
        return self._snapshot.scan(columns_argument(columns), self._filter(predicate), row_ids, view_types)

    def scan(
        self, columns: Sequence[str] | None = None, predicate: Filter | None = None
    ) -> _internal.ArrowStream:
        """Returns the rows as an Arrow stream; `deltalake`'s name for `to_arrow`."""
        return self.to_arrow(columns, predicate)

    def to_pyarrow_table(
        self,
        partitions: Filter | None = None,
        columns: Sequence[str] | None = None,
        filesystem: None = None,
        filters: Filter | None = None,
    ) -> "pyarrow.Table":
        """Returns the rows as a `pyarrow.Table`. Needs pyarrow.

        Args:
            partitions: a filter as `filters`; rows must meet both. `deltalake` has it for filters on
                partition columns.
            columns: the columns to read, in this order; all if None.
            filesystem: refused unless None, because deltalog reads files by itself.
            filters: the rows to read, as SQL text or tuples such as `[("month", "=", 7)]`; a
                `pyarrow.dataset.Expression` is refused.

        Raises:
            UnsupportedFeatureError: a `filesystem` or an `Expression` was given.
            DeltaError: as `to_arrow`, and for what is read after the first batch an exception of pyarrow.
        """
        import pyarrow

        if filesystem is not None:
            raise UnsupportedFeatureError(
                "a filesystem of pyarrow is not supported: deltalog reads the files of a table by itself"
            )
        conditions = [text for text in map(self._filter, (partitions, filters)) if text is not None]
        predicate = " AND ".join(f"({text})" for text in conditions) or None
        return pyarrow.table(self.to_arrow(columns, predicate))

    def to_pandas(
        self,
        partitions: Filter | None = None,
        columns: Sequence[str] | None = None,
        filesystem: None = None,
        filters: Filter | None = None,
        types_mapper: "Callable[[pyarrow.DataType], Any] | None" = None,
    ) -> "pandas.DataFrame":
        """Returns the rows as a pandas frame. Needs pandas and pyarrow.

        `types_mapper` is that of `pyarrow.Table.to_pandas`; the other arguments are those of
        `to_pyarrow_table`.
        """
        rows = self.to_pyarrow_table(partitions, columns, filesystem, filters)
        frame: pandas.DataFrame = rows.to_pandas(types_mapper=types_mapper)
        return frame

    def count(self, predicate: Filter | None = None) -> int:
        """Returns how many rows there are; with a `predicate`, for how many it is true. The count is exact.

        It comes from the log: the record counts of the files less their deleted rows. Only the footers of
        files whose statistics have no count are opened. A predicate on partition columns is answered in the
        same way. For a predicate on other columns, those columns are read from the files that may match.
        """
        return self._snapshot.count(self._filter(predicate))

    def count_by_partition(self, predicate: Filter | None = None) -> _internal.ArrowStream:
        """Returns how many rows each partition has, as an Arrow stream of the partition columns and `count`.

        Partitions are in the order of their values, null first; those without rows are left out. A table
        without partition columns has one row. The counts are exact, and as cheap as `count`.
        """
        return self._snapshot.count_by_partition(self._filter(predicate))

    def min_max(self, column: str, predicate: Filter | None = None) -> tuple[Any, Any] | None:
        """Returns the least and the greatest value of a column, or None if the log does not tell them exactly.

        Struct fields are separated by `.`. The log tells the bounds of partition columns, and of whole
        numbers, decimals, dates and booleans whose statistics are complete and tight. It does not tell those
        of strings and timestamps, which are cut off, those of floating-point numbers, which do not count NaN,
        nor any with a `predicate` on other than partition columns. `(None, None)` says that there is no value.
        Rows are never read.

        Raises:
            InvalidArgumentError: there is no such column.
        """
        return self._snapshot.min_max(column, self._filter(predicate))

    def load_cdf(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: datetime | str | None = None,
        ending_timestamp: datetime | str | None = None,
        columns: Sequence[str] | None = None,
        predicate: Filter | None = None,
        allow_out_of_range: bool = False,
    ) -> _internal.ArrowStream:
        """Returns the change data feed as an Arrow stream: inserted, updated and deleted rows, in order of versions.

        Rows have the table's columns as of the last version of the range, then `_change_type` (`insert`,
        `delete`, `update_preimage`, `update_postimage`), `_commit_version` and `_commit_timestamp`.

        Args:
            starting_version: the first version; 0 if neither this nor `starting_timestamp` is given.
            ending_version: the last version; the table's newest, whatever version is open, if neither this
                nor `ending_timestamp` is given, or if it is beyond that.
            starting_timestamp: begin with the first version committed then or later; a `datetime` (without a
                zone: UTC), or ISO 8601 text.
            ending_timestamp: end with the last version committed then or earlier.
            columns: as in `to_arrow`; the columns of the feed can be named too.
            predicate: as in `to_arrow`; it may name the columns of the feed. Files that cannot hold such a
                row, by their partition values or statistics, by version, time or `_change_type`, are not
                opened.
            allow_out_of_range: return no rows, instead of raising, for a range that begins after the newest
                version or ends before it begins.

        Raises:
            VersionNotFoundError: the commits of a version are gone, the feed was off
                (`delta.enableChangeDataFeed`) at one, or the range begins after the newest; the message lists
                the readable versions.
            SchemaMismatchError: the rows of a version do not fit the schema of the last version, because a
                column was dropped, renamed or changed.
            InvalidArgumentError: the range ends before it begins, or a column or the predicate does not fit.
            MissingFileError: a data file is not there, as after a vacuum.
        """
        return self._snapshot.changes(
            ChangeRange(
                version_argument(starting_version),
                version_argument(ending_version),
                timestamp_argument(starting_timestamp, round_up=True),
                timestamp_argument(ending_timestamp),
            ),
            columns_argument(columns),
            self._filter(predicate),
            allow_out_of_range,
        )

    def find_commit(self, transaction_id: str) -> int | None:
        """Finds the version that a transaction has committed, in the newest state of the log.

        Tells what became of a write that raised `CommitStateUnknownError`, whose `transaction_id` it takes. If
        the write was to create the table and opening it raises `NotATableError`, nothing was committed.

        Returns:
            The version; None if no commit of the log carries the id. Commits that were cleaned up are not found.
        """
        return self._snapshot.find_commit(transaction_id)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def create_checkpoint(self) -> None:
        """Writes a checkpoint of the version that is open, so that readers need no older commits.

        Its form follows from the table's properties: `delta.checkpointPolicy`,
        `delta.checkpoint.writeStatsAsJson` and `delta.checkpoint.writeStatsAsStruct`. Writes do this on their own,
        every `delta.checkpointInterval` versions.

        Raises:
            DeltaError: the table cannot be read or written. It is unchanged.
        """
        self._snapshot.create_checkpoint()

    def update_incremental(self, *, staged_commits: Iterable[StagedCommit] | None = None) -> None:
        """Goes to the newest version; reads only the commits that are new.

        Threads may call it at once: one that is slow never puts the table back to an older version than
        another has opened meanwhile.

        Args:
            staged_commits: what the table's catalog lists by now, if one manages the table.

        Raises:
            DeltaError: as opening the table; the version that is open stays open.
        """
        staged = staged_argument(staged_commits)
        self._move(lambda snapshot: snapshot.refresh(staged))

    def load_as_version(self, version: int | str | datetime) -> None:
        """Goes to another version of the table, older or newer.

        Args:
            version: the version, or a time as in `DeltaTable(timestamp=...)`.

        Raises:
            VersionNotFoundError: there is no such version or time; the version that is open stays open.
        """
        if isinstance(version, (str, datetime)):
            timestamp = timestamp_argument(version)
            self._move(lambda snapshot: snapshot.at(None, timestamp))
            return
        number = version_argument(version)
        if number is None:
            raise InvalidArgumentError("the version to load is missing")
        self._move(lambda snapshot: snapshot.at(number, None))

    def _filter(self, filters: Filter | None) -> str | None:
        return (
            filters
            if filters is None or isinstance(filters, str)
            else filter_argument(filters, self.schema())
        )

    def _move(self, to: Callable[[_internal.Snapshot], _internal.Snapshot]) -> None:
        """Opens what `to` makes of the open snapshot; again, if another thread has opened one meanwhile."""
        while True:
            before = self._snapshot
            after = to(before)
            with _swap:
                if self._snapshot is before:
                    self._snapshot = after
                    return

    def __reduce__(self) -> tuple[Any, ...]:
        if self._has_catalog:
            raise UnsupportedFeatureError(
                "a table that was opened with staged commits cannot be pickled; "
                "open it in the other process with what the catalog lists then"
            )
        snapshot = self._snapshot
        return _reopen, (snapshot.uri, snapshot.version, snapshot.allowed_roots, snapshot.table_id)

    def __repr__(self) -> str:
        return f"DeltaTable('{self.table_uri}', version={self.version()})"


def _reopen(table_uri: str, version: int, allowed_roots: list[str], table_id: str) -> DeltaTable:
    """Opens a table that was pickled."""
    table = DeltaTable.__new__(DeltaTable)
    table._snapshot = _internal.Snapshot.open(
        table_uri, version=version, allowed_roots=allowed_roots, table_id=table_id
    )
    table._has_catalog = False
    return table
