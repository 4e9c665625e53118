"""A table at a version, and what can be asked of it."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from deltalog import _internal
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
from deltalog.errors import InvalidArgumentError, NotATableError
from deltalog.schema import Schema
from deltalog.verification import Verification

__all__ = ["DeltaTable", "Metadata", "Protocol"]


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
    """A table at a version. The version stays until `update()`; threads may share a table.

    Args:
        table_uri: a path or a `file://` URL.
        version: the version to open; the newest if neither this nor `timestamp` is given.
        timestamp: open the version that was the newest then; a `datetime` (without a zone: UTC), or ISO 8601
            text. A time before the first commit or after the last is refused.
        storage_options: options of the store; local files have none.
        staged_commits: of a table that a catalog manages (table feature `catalogManaged`): the commits that
            the catalog has accepted and not published yet, perhaps none; each the name or path of a file in
            `_delta_log/_staged_commits`, or its version and its bytes. Such a table cannot be opened by its
            path alone.
        allowed_roots: paths or URLs below which data files and deletion vectors may lie, beside the table's
            own location. Those of a shallow clone lie in the table that it was cloned from; a file outside of
            all roots is refused.

    Raises:
        NotATableError: there is no table.
        VersionNotFoundError: there is a table, but not that version or time; the message tells which there
            are.
        InvalidArgumentError: what was passed is no location, version or time.
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

    @staticmethod
    def is_deltatable(
        table_uri: "str | os.PathLike[str]", storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Whether there is a Delta table, readable or not. A store that does not answer raises."""
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
    ) -> "DeltaTable":
        """Makes a table without rows and opens it.

        Args:
            table_uri: a path or a `file://` URL.
            schema: a `Schema`, or anything with `__arrow_c_schema__`, such as a `pyarrow.Schema`.
            mode: if there is a table: fail, or open it as it is.
            partition_by: columns to partition by.
            name, description, configuration: of the new table.
            storage_options: options of the store; local files have none.

        Raises:
            TableAlreadyExistsError: with the mode `error`.
            SchemaMismatchError: there can be no such table.
            UnsupportedFeatureError: a property or a type asks for what cannot be written yet.
        """
        wanted = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
        options = options_argument(storage_options, "a storage option")
        _internal.create_table(
            location_argument(table_uri),
            wanted.to_json(),
            mode,
            table_options(partition_by, configuration, name, description),
            options,
        )
        return cls(table_uri, storage_options=options)

    @property
    def table_uri(self) -> str:
        """Where the table lies, as a URL."""
        return self._snapshot.uri

    def version(self) -> int:
        """The version that is open."""
        return self._snapshot.version

    def schema(self) -> Schema:
        """The table's schema."""
        return Schema(self._snapshot.schema_json)

    def metadata(self) -> Metadata:
        """Name, partitioning, configuration."""
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
        """The columns that the table is clustered by, in order, those in structs as `struct.field`; none if
        it is not clustered.
        """
        return [".".join(path) for path in self._snapshot.clustering_columns()]

    def protocol(self) -> Protocol:
        """What readers and writers must support."""
        snapshot = self._snapshot
        return Protocol(
            snapshot.min_reader_version,
            snapshot.min_writer_version,
            snapshot.reader_features,
            snapshot.writer_features,
        )

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits up to this version, newest first, at most `limit`.

        Each is a dictionary of `version`, `timestamp` (milliseconds since the epoch) and what its writer
        said, such as `operation`, `operationParameters`, `operationMetrics`, `engineInfo` and `userMetadata`.
        Commits that were cleaned up are left out.
        """
        return [json.loads(entry) for entry in self._snapshot.history_json(limit_argument(limit))]

    def history_arrow(self, limit: int | None = None) -> _internal.ArrowStream:
        """The same as an Arrow stream, a row a commit.

        Columns: `version`, `timestamp`, `operation`, `operation_parameters` and `operation_metrics` (maps of
        text), `user_id`, `user_name`, `user_metadata`, `engine_info`, `txn_id`, `read_version`,
        `isolation_level`, `is_blind_append`, `in_commit_timestamp`, `commit_timestamp` (what the writer's
        clock said), and `other`: a JSON object of all further fields. What a writer did not say is null.
        """
        return self._snapshot.history(limit_argument(limit))

    def changes(self, start: int, end: int | None = None) -> _internal.ArrowStream:
        """The actions of the versions from `start` to `end` (both included; to this version if None) as an Arrow stream, a row an action, in the log's order.

        Columns: `version`, `timestamp` (when it was committed), `action` (its name in the log, such as
        `add`), of file actions `path` (as in `files`), `size`, `partition_values` (a map of text),
        `data_change`, `modification_time` (of a `remove`, when it was removed) and `deletion_vector` (its
        unique id), and `json`: the action's content as it stands in the log.

        Raises:
            VersionNotFoundError: a commit was cleaned up, or is not there yet; the message tells which there
                are.
            CorruptLogError: a commit is missing among others, or damaged.
        """
        first = version_argument(start)
        if first is None:
            raise InvalidArgumentError("the version to start from is missing")
        return self._snapshot.commit_actions(first, version_argument(end))

    def verify(self) -> Verification:
        """Compares this version, replayed from the log, with its checksum file, if there is one.

        What differs is in the result, not raised.
        """
        return Verification.of(self._snapshot)

    def domain_metadata(self) -> dict[str, str]:
        """The configuration of each metadata domain (protocol: "Domain Metadata")."""
        return self._snapshot.domain_metadata()

    def transaction_versions(self) -> dict[str, int]:
        """How far each application got that records its progress in the table (protocol:

        "Transaction Identifiers").
        """
        return self._snapshot.transaction_versions()

    def files(
        self, predicate: str | None = None, columns: Sequence[str] | None = None
    ) -> _internal.ArrowStream:
        """The live data files as an Arrow stream, a row a file; only the columns asked for are decoded, and come in the order given.

        Columns: `path` (decoded, relative to the table), `size` (bytes), `modification_time`,
        `partition_values` (a typed struct), `num_records` (of the data file: rows that its deletion vector
        deletes are counted), `stats` (a typed struct of `numRecords, tightBounds, minValues, maxValues,
        nullCount`), `deletion_vector` (a struct of `storage_type, path_or_inline_dv, offset, size_in_bytes,
        cardinality`), `base_row_id` and `default_row_commit_version` (of row tracking).

        With a `predicate` (SQL, such as `"month = 7 AND delay > 60"`) files that cannot hold a matching row
        are left out, by their partition values and statistics.
        """
        return self._snapshot.files(columns_argument(columns), predicate)

    def file_uris(self, predicate: str | None = None) -> list[str]:
        """The URLs of the live data files; with a `predicate`, of those that may hold a matching row."""
        return self._snapshot.file_uris(predicate)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        *,
        row_ids: bool = False,
        view_types: bool = False,
    ) -> _internal.ArrowStream:
        """The rows as an Arrow stream, read file by file: `pyarrow.table(table.to_arrow())`, `polars.DataFrame(table.to_arrow())`.

        Columns come in the order given; none at all is a stream of row counts. With a `predicate` (SQL, in
        Spark's spelling: times without a zone are of UTC, a backslash in a text is doubled) only rows for
        which it is true; files, row groups and pages that cannot hold one are not read.

        With `row_ids` the columns `_row_id` and `_row_commit_version` follow: a row keeps its id when it is
        updated or moved to another file, and its commit version is that of the last change to it. Only tables
        with row tracking enabled have them. The predicate may name them, too.

        With `view_types` strings and bytes are Arrow's `string_view` and `binary_view`, which need not be
        copied: faster, for Polars, DuckDB and all who take them. (Many functions of pyarrow do not yet.)

        The rows of a file come in its order, files in any: several are read at once. (A handful of small
        files is read in the order of the list.)

        The first batch is read here, so that most failures are a `DeltaError` of this call. What fails later
        is raised by the library that takes the stream, as an exception of its own with the same words; of
        pyarrow's, an absent file is an `OSError`, a damaged one a `ValueError`.

        Raises:
            InvalidArgumentError: there is no such column, the predicate does not fit the schema, or the rows
                have no ids.
            MissingFileError: a data file is not there.
            CorruptDataError: a data file cannot be read.
        """
        return self._snapshot.scan(columns_argument(columns), predicate, row_ids, view_types)

    def count(self, predicate: str | None = None) -> int:
        """How many rows there are; with a `predicate` (SQL), how many it is true for. Always exact.

        The log answers: the files' record counts less their deleted rows. Footers are opened only of files
        whose statistics do not count. So it is with a predicate on partition columns; one on other columns
        makes rows be read, of that predicate's columns and of the files that may match.
        """
        return self._snapshot.count(predicate)

    def count_by_partition(self, predicate: str | None = None) -> _internal.ArrowStream:
        """How many rows each partition has, as an Arrow stream of the partition columns and `count`: `pyarrow.table(table.count_by_partition())`.

        Partitions are in the order of their values, null first; those without rows are not there. A table
        without partition columns has one row. Exact, and as cheap as `count`.
        """
        return self._snapshot.count_by_partition(predicate)

    def min_max(self, column: str, predicate: str | None = None) -> tuple[Any, Any] | None:
        """The least and the greatest value of a column (struct fields separated by `.`), or None if the log does not tell them exactly.

        It tells them of partition columns, and of whole numbers, decimals, dates and booleans whose
        statistics are complete and tight. It never does of strings and timestamps, whose bounds are cut off,
        and of floating-point numbers, among which a NaN may hide; nor with a `predicate` on other than
        partition columns. `(None, None)` says that there is no value. Rows are never read.

        Raises:
            InvalidArgumentError: there is no such column.
        """
        return self._snapshot.min_max(column, predicate)

    def load_cdf(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: datetime | str | None = None,
        ending_timestamp: datetime | str | None = None,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        allow_out_of_range: bool = False,
    ) -> _internal.ArrowStream:
        """The change data feed as an Arrow stream: the rows that versions inserted, updated and deleted, in the order of the versions.

        Rows have the table's columns as of the last version of the range, then `_change_type` (`insert`,
        `delete`, `update_preimage`, `update_postimage`), `_commit_version` and `_commit_timestamp`.

        Args:
            starting_version: the first version; 0 if neither this nor `starting_timestamp` is given.
            ending_version: the last version; the table's newest, whatever version is open, if neither this
                nor `ending_timestamp` is given, or if it is beyond that.
            starting_timestamp: begin with the first version committed then or later; a `datetime` (without a
                zone: UTC), or ISO 8601 text.
            ending_timestamp: end with the last version committed then or earlier.
            columns: as of `to_arrow`; the columns of the feed can be named too.
            predicate: as of `to_arrow`; it may name the columns of the feed. Files that cannot hold such a
                row, by their partition values or statistics, by version, time or `_change_type`, are not
                opened.
            allow_out_of_range: a range that begins after the newest version, or ends before it begins, has no
                rows and is no error.

        Raises:
            VersionNotFoundError: the commits of a version are gone, the feed was off
                (`delta.enableChangeDataFeed`) at one, or the range begins after the newest; the message tells
                what can be read.
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
            predicate,
            allow_out_of_range,
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def update(self, *, staged_commits: Iterable[StagedCommit] | None = None) -> None:
        """Goes to the newest version; costs the new commits only.

        `staged_commits` is what the table's catalog says by now, if one manages it.
        """
        self._snapshot = self._snapshot.refresh(staged_argument(staged_commits))

    def __repr__(self) -> str:
        return f"DeltaTable('{self.table_uri}', version={self.version()})"
