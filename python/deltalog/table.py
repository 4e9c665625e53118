"""A table at a version, and what can be asked of it."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from deltalog import _internal
from deltalog.arguments import (
    columns_argument,
    limit_argument,
    location_argument,
    options_argument,
    timestamp_argument,
    version_argument,
)
from deltalog.errors import NotATableError
from deltalog.schema import Schema

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
        timestamp: open the version that was the newest then; a `datetime` (without a zone: UTC), or ISO 8601 text. A time before the first commit or
            after the last is refused.
        storage_options: options of the store; local files have none.

    Raises:
        NotATableError: there is no table.
        VersionNotFoundError: there is a table, but not that version or time; the message tells which there are.
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
    ) -> None:
        self._snapshot = _internal.Snapshot.open(
            location_argument(table_uri),
            version_argument(version),
            timestamp_argument(timestamp),
            options_argument(storage_options, "a storage option"),
        )

    @staticmethod
    def is_deltatable(table_uri: "str | os.PathLike[str]", storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether there is a Delta table, readable or not. A store that does not answer raises."""
        try:
            _internal.Snapshot.open(location_argument(table_uri), None, None, options_argument(storage_options, "a storage option"))
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
            partition_by=columns_argument([partition_by] if isinstance(partition_by, str) else partition_by),
            configuration=options_argument(configuration, "a table property"),
            name=name,
            description=description,
            storage_options=options,
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

    def protocol(self) -> Protocol:
        """What readers and writers must support."""
        snapshot = self._snapshot
        return Protocol(snapshot.min_reader_version, snapshot.min_writer_version, snapshot.reader_features, snapshot.writer_features)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits up to this version, newest first, at most `limit`.

        Each is a dictionary of `version`, `timestamp` (milliseconds since the epoch) and what its writer said, such as `operation`,
        `operationParameters`, `operationMetrics`, `engineInfo` and `userMetadata`. Commits that were cleaned up are left out.
        """
        return [json.loads(entry) for entry in self._snapshot.history_json(limit_argument(limit))]

    def files(self, predicate: str | None = None, columns: Sequence[str] | None = None) -> _internal.ArrowStream:
        """The live data files as an Arrow stream, a row a file; only the columns asked for are decoded, and come in the order given.

        Columns: `path` (decoded, relative to the table), `size` (bytes), `modification_time`, `partition_values` (a typed struct), `num_records`, `stats` (a typed struct of
        `numRecords, tightBounds, minValues, maxValues, nullCount`), `deletion_vector` (a struct of
        `storage_type, path_or_inline_dv, offset, size_in_bytes, cardinality`).

        With a `predicate` (SQL, such as `"month = 7 AND delay > 60"`) files that cannot hold a matching row are left out, by their partition values
        and statistics.
        """
        return self._snapshot.files(columns_argument(columns), predicate)

    def file_uris(self, predicate: str | None = None) -> list[str]:
        """The URLs of the live data files; with a `predicate`, of those that may hold a matching row."""
        return self._snapshot.file_uris(predicate)

    def to_arrow(self, columns: Sequence[str] | None = None, predicate: str | None = None) -> _internal.ArrowStream:
        """The rows as an Arrow stream, read file by file: `pyarrow.table(table.to_arrow())`, `polars.DataFrame(table.to_arrow())`.

        Columns come in the order given; none at all is a stream of row counts. With a `predicate` (SQL, in Spark's spelling: times without a zone are
        of UTC, a backslash in a text is doubled) only rows for which it is true; files and row groups that cannot hold one are not read.

        The first batch is read here, so that most failures are a `DeltaError` of this call. What fails later is raised by the library that takes the
        stream, as an exception of its own with the same words; of pyarrow's, an absent file is an `OSError`, a damaged one a `ValueError`.

        Raises:
            InvalidArgumentError: there is no such column, or the predicate does not fit the schema.
            MissingFileError: a data file is not there.
            CorruptDataError: a data file cannot be read.
        """
        return self._snapshot.scan(columns_argument(columns), predicate)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def update(self) -> None:
        """Goes to the newest version; costs the new commits only."""
        self._snapshot = self._snapshot.refresh()

    def __repr__(self) -> str:
        return f"DeltaTable('{self.table_uri}', version={self.version()})"
