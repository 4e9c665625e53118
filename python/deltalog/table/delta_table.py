"""A table at a version, and its operations."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from deltalog import _internal
from deltalog.arguments import (
    StagedCommit,
    StoreOptions,
    location_argument,
    names_argument,
    options_argument,
    required_version,
    roots_argument,
    span_argument,
    staged_argument,
    store_argument,
    stream_argument,
    table_options,
    timestamp_argument,
    version_argument,
)
from deltalog.arrow_types import ArrowData, ArrowSchemaExportable
from deltalog.checked import checks_arguments
from deltalog.clone import CloneArguments, CloneResult
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.credentials import CredentialProvider, is_foreign
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError, hinted
from deltalog.html import Facts
from deltalog.interrupts import after_commit
from deltalog.schema import Schema, schema_argument
from deltalog.table.alter import TableAlterer
from deltalog.table.dataset import TableDataset
from deltalog.table.handle import Opened, caught_up
from deltalog.table.log import TableLog
from deltalog.table.maintenance import TableMaintenance
from deltalog.table.optimize import TableOptimizer
from deltalog.table.rows import TableRows
from deltalog.table.statements import TableStatements
from deltalog.table.stream import TableStreams
from deltalog.writer_properties import WriterProperties, file_format_argument

__all__ = ["DeltaTable", "Metadata", "Protocol"]


@dataclass(frozen=True)
class Metadata(Facts):
    """The table's metadata (protocol: "Change Metadata")."""

    id: str
    name: str | None
    description: str | None
    partition_columns: list[str]
    created_time: int | None
    """Milliseconds since the epoch."""
    configuration: dict[str, str]


@dataclass(frozen=True)
class Protocol(Facts):
    """The versions and table features that readers and writers must support (protocol: "Protocol Evolution")."""

    min_reader_version: int
    min_writer_version: int
    reader_features: list[str] | None
    writer_features: list[str] | None


@checks_arguments
class DeltaTable(
    TableRows,
    TableDataset,
    TableStreams,
    TableLog,
    TableStatements,
    TableMaintenance,
):
    """A table at a version, for reads and changes.

    - Reads return the version that is open. The table stays at this version until `update_incremental()`,
      `load_as_version()`, or a change of the table through this object.
    - Operations that change the table first read the log, and act on the newest version: `delete`, `update`, `merge`,
      `restore`, the methods of `alter` and `optimize`, `repair`, `recompute_statistics`, `vacuum`, `generate`,
      `cleanup_metadata`, and appends by `write_deltalake`. Afterwards the table is at the version that was committed,
      or at a later version with the same rows.
    - An overwrite by `write_deltalake` or `create` replaces the version whose rows were read through this object,
      because the new rows may have been computed from them. This is the version that was opened, or the version from
      which rows were last read, plus commits made through this object. If another writer has changed the table after
      that version, the overwrite raises `CommitConflictError`.
    - A table that was opened with `version` or `timestamp`, or moved by `load_as_version()`, is pinned: it refuses
      all operations that change the table. `update_incremental()` moves to the newest version and removes the pin.

    Threads may share a table. A table can be pickled: the pickle contains its location, its version, whether it is
    pinned, its allowed roots, and a credential provider that is a function, but no storage options, so that no secret
    leaves the process.

    Args:
        table_uri: a path, or a URL with the scheme `file`, `s3` (also `s3a`), `gs` or `abfss` (also `az`).
        version: the version to open; the newest if neither `version` nor `timestamp` is given.
        timestamp: opens the version that was the newest at this time; a `datetime` (without a zone: UTC), or ISO 8601
            text. A time before the first commit or after the last is refused.
        storage_options: options of the store, with the same names as in `deltalake`. They override the environment.
            Options are refused for local files. For S3, `aws_profile` names a profile of the AWS tools. See
            `docs/stores.md`.
        credential_provider: provides credentials for the store, instead of options or the environment: a boto3 session,
            a credential of azure-identity, credentials of google-auth, or a function without arguments. The function
            returns one of these objects, or a mapping such as `{"access_key_id": ..., "secret_access_key": ...,
            "session_token": ..., "expires_at": ...}` or `{"token": ..., "expires_at": ...}` (a datetime, text in ISO
            8601, or seconds since the epoch). The provider is called again some minutes before the credentials expire,
            on another thread, and never twice at the same time. If they do not expire, it is called once. Tables that
            are open at the same time with the same provider and options share the credentials. A pickled table includes
            a provider that is a function, if it can be pickled, but no object of these packages.
        staged_commits: for a table that a catalog manages (table feature `catalogManaged`), the commits that
            the catalog has accepted and not published yet, or an empty list. Each is the name or path of a
            file in `_delta_log/_staged_commits`, or its version and its bytes. Such a table cannot be opened
            by its path alone.
        allowed_roots: paths or URLs of directories that may contain data files and deletion vectors, in addition to the
            table's own location. A shallow clone refers to files of the table from which it was cloned. A file outside
            all roots is refused.
        max_age: a number of seconds. If this process has read the log of the table within that time, the newest version
            that it has seen is opened without reading anything, and the log is read in the background. Only applies if
            neither `version` nor `timestamp` is given.

    Raises:
        NotATableError: there is no table.
        VersionNotFoundError: there is a table, but not that version or time; the message lists the readable
            ones.
        InvalidArgumentError: an argument is not a location, version or time.
        CorruptLogError: the log breaks the protocol; the message has the file and the line.
        UnsupportedFeatureError: the table has a feature that deltalog cannot read yet.
    """

    def __init__(
        self,
        table_uri: "str | os.PathLike[str]",
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        timestamp: datetime | str | None = None,
        staged_commits: Iterable[StagedCommit] | None = None,
        allowed_roots: "Iterable[str | os.PathLike[str]] | None" = None,
        max_age: float | timedelta | None = None,
        credential_provider: CredentialProvider | None = None,
    ) -> None:
        location = location_argument(table_uri)
        snapshot = _internal.Snapshot.open(
            location,
            version_argument(version),
            timestamp_argument(timestamp),
            store_argument(location, storage_options, credential_provider),
            staged_argument(staged_commits),
            roots_argument(allowed_roots),
            max_age=span_argument(max_age, "max_age"),
        )
        self._opened = Opened.at(snapshot, is_pinned=version is not None or timestamp is not None)
        self._has_catalog = staged_commits is not None
        self._credential_provider = credential_provider

    @staticmethod
    def is_deltatable(
        table_uri: "str | os.PathLike[str]",
        storage_options: Mapping[str, str] | None = None,
        *,
        credential_provider: CredentialProvider | None = None,
    ) -> bool:
        """Returns whether there is a Delta table at the location, even if deltalog cannot read it. Raises an error if
        the store does not answer.
        """
        location = location_argument(table_uri)
        return _internal.table_exists(
            location, store_argument(location, storage_options, credential_provider)
        )

    @classmethod
    def create(
        cls,
        table_uri: "str | os.PathLike[str] | DeltaTable",
        schema: Schema | ArrowSchemaExportable | None = None,
        mode: Literal["error", "ignore", "overwrite"] = "error",
        partition_by: Sequence[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        cluster_by: Sequence[str] | str | None = None,
        constraints: Mapping[str, str] | None = None,
        data: ArrowData | None = None,
        commit_properties: CommitProperties | None = None,
        credential_provider: CredentialProvider | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> "DeltaTable":
        """Creates a table, or replaces it, in one commit, and opens it.

        The protocol gets the table features that columns and properties need (protocol: "Table Features for New and
        Existing Tables"). Definitions that are invalid, or that deltalog could not write, are refused before anything
        is written.

        A table that is replaced (mode `overwrite`) keeps its history, its features, the recorded versions of
        applications, the metadata domains of users, and, unless `configuration` sets them, `delta.enableRowTracking`,
        `delta.enableDeletionVectors` and `delta.checkpointPolicy`. Everything else is replaced: schema, partitioning,
        clustering, constraints, other properties, rows and the table id. A write that was prepared for the old table
        fails with a conflict.

        Args:
            table_uri: a path, a URL, or a `DeltaTable`, whose version, storage options and allowed roots are used. If
                `data` was computed from a table, pass that `DeltaTable`. The mode `overwrite` then replaces exactly the
                version that was read through it (see `DeltaTable`): if another writer has added or removed files since,
                the call raises `CommitConflictError`. Afterwards the table is at the committed version.
            schema: a `Schema`, or anything with `__arrow_c_schema__`, such as a `pyarrow.Schema`. A `Field` of a
                `Schema` can be generated, have a default value, or be an identity column. If None, the schema of `data`
                is used.
            mode: what to do if a table exists: fail (`error`), open it without changing it (`ignore`), or replace it
                (`overwrite`).
            partition_by: columns to partition by. In such columns, the log cannot distinguish the empty string from
                NULL: `""` is read as NULL (protocol: "Partition Value Serialization").
            cluster_by: at most four columns to cluster by, which may be fields of structs (`struct.field`), instead of
                partition columns. With an empty list, the table supports clustering but has no clustering columns yet.
            constraints: CHECK constraints by name: `{"positive": "price > 0"}`.
            data: rows to write in the same commit, as for `write_deltalake`. If writing them fails, nothing is
                committed.
            name: name of the new table.
            description: description of the new table.
            configuration: properties of the new table.
            storage_options: storage options, see `DeltaTable`.
            credential_provider: provides credentials for the store, see `DeltaTable`.
            commit_properties: what to record with the commit.
            writer_properties: how the files of `data` are encoded, as for `write_deltalake`.

        Raises:
            TableAlreadyExistsError: there is a table, and the mode is `error`.
            SchemaMismatchError: a table cannot have this schema or partitioning, or `data` do not fit it.
            InvalidArgumentError: rules contradict each other, an expression cannot be evaluated, a column cannot be a
                clustering column, or the table that was to be replaced is append-only, or is pinned to a version.
            CommitConflictError: another writer has changed the table that was to be replaced. Nothing was committed.
            UnsupportedFeatureError: a property or a type needs a feature that cannot be written yet.
        """
        if isinstance(table_uri, DeltaTable) and data is table_uri:
            # This comes first, because it marks the open version as read, and an overwrite replaces the version that
            # was read.
            data = table_uri.to_arrow()
        uri, options, base = target_argument(
            table_uri, storage_options, credential_provider, mode, "table_uri"
        )
        created = _internal.create_table(
            uri,
            None if schema is None else schema_argument(schema).to_json(),
            mode,
            table_options(partition_by, configuration, name, description),
            commit_arguments(commit_properties),
            options,
            None if data is None else stream_argument(data),
            None if cluster_by is None else names_argument(cluster_by, "cluster_by", one=True),
            options_argument(constraints, "constraints"),
            base,
            file_format_argument(writer_properties),
        )
        if isinstance(table_uri, DeltaTable) and base is not None:
            table_uri._has_written(created)
            with after_commit(lambda: uri, created):
                opened = Opened.at(base.refresh())
            return cls._at(
                opened,
                has_catalog=table_uri._has_catalog,
                credential_provider=table_uri._credential_provider,
            )
        with after_commit(lambda: _internal.canonical_uri(uri, options), created):
            return cls(uri, storage_options=options.options, credential_provider=credential_provider)

    @classmethod
    def _at(
        cls,
        opened: Opened,
        *,
        has_catalog: bool,
        credential_provider: CredentialProvider | None = None,
    ) -> "DeltaTable":
        table = cls.__new__(cls)
        table._opened, table._has_catalog = opened, has_catalog
        table._credential_provider = credential_provider
        return table

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
        """Returns the columns that the table is clustered by, in order; a field of a struct is given as `struct.field`.

        The list is empty if the table is not clustered.
        """
        return [".".join(path) for path in self._snapshot.clustering_columns()]

    def protocol(self) -> Protocol:
        """Returns the protocol: the versions and table features that readers and writers must support."""
        snapshot = self._snapshot
        return Protocol(
            snapshot.min_reader_version,
            snapshot.min_writer_version,
            snapshot.reader_features,
            snapshot.writer_features,
        )

    @property
    def alter(self) -> TableAlterer:
        """Methods that change the definition of the table: properties, features, columns and constraints."""
        return TableAlterer(self)

    def clone(
        self,
        target_uri: "str | os.PathLike[str]",
        *,
        shallow: bool = False,
        mode: Literal["error", "ignore", "overwrite"] = "error",
        configuration: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        commit_properties: CommitProperties | None = None,
        credential_provider: CredentialProvider | None = None,
        dry_run: bool = False,
    ) -> CloneResult:
        """Clones this version to another location, as a copy or as a table that refers to the same files.

        The clone has the rows, the schema, the partitioning, the clustering columns, the properties and the features of
        this version, and a separate history. With row tracking, its rows get new ids.

        A deep clone (the default) has copies of all files. If it is repeated with the mode `overwrite`, only new files
        are copied; cloning the same version again changes nothing.

        A shallow clone refers to the files of this table. Its readers must allow that: `DeltaTable(target_uri,
        allowed_roots=result.allowed_roots)`. The JVM connector reads such a clone without this. A VACUUM of this table
        ignores its clones, and a clone becomes unreadable if VACUUM deletes a file to which it refers. A VACUUM of the
        clone only deletes files in its own directory.

        Args:
            target_uri: a path, or a URL. The clone must not be inside of this table, nor this table inside of the
                clone. A shallow clone must be in the same store.
            shallow: whether the clone refers to the files of this table.
            mode: what to do if a table exists: fail (`error`), leave it unchanged (`ignore`), or replace it in one
                commit (`overwrite`).
            configuration: properties of the clone, which take precedence over the properties of this table.
            storage_options: options of the clone's store, see `DeltaTable`.
            credential_provider: provides credentials for the clone's store, see `DeltaTable`.
            commit_properties: what to record with the commit. Its `app_transactions` must be empty.
            dry_run: whether to copy and commit nothing. The metrics then describe what would be done.

        Raises:
            TableAlreadyExistsError: there is a table, and the mode is `error`.
            InvalidArgumentError: the target is this table or a directory inside it, a property cannot be set, or the
                table that is to be replaced is append-only.
            MissingFileError: a file of this version no longer exists.
            CommitConflictError: another writer has changed the table that was to be replaced.
            UnsupportedFeatureError: a shallow clone would be in another store, or the table that would be replaced has
                a feature that deltalog cannot write.
        """
        location = location_argument(target_uri, "target_uri")
        metrics, version, roots = _internal.clone_table(
            self._snapshot,
            location,
            CloneArguments(
                shallow,
                mode,
                options_argument(configuration, "configuration"),
                dry_run,
                None,
                store_argument(location, storage_options, credential_provider),
            ),
            commit_arguments(commit_properties),
        )
        return CloneResult(metrics, version, roots)

    def restore(
        self,
        target: int | str | datetime,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        dry_run: bool = False,
    ) -> dict[str, int]:
        """Restores an earlier version as the newest one: its rows, schema, properties and clustering columns.

        The restore is a commit like any other, so the versions in between stay readable, and it can be undone by
        restoring one of them. Features of the protocol are kept, and generated numbers (identity columns, row ids,
        column ids) continue. The progress of applications is kept, too.

        Args:
            target: the version, or a time as in `DeltaTable(timestamp=...)`.
            ignore_missing_files: whether to leave out files that no longer exist, because VACUUM has deleted them,
                together with their rows. Otherwise such files are an error, and nothing is changed. The same applies to
                files that a VACUUM may still be deleting, because it has begun within the last day and has not recorded
                its end.
            protocol_downgrade_allowed: whether the protocol of the earlier version is restored, too.
            commit_properties: what to record with the commit. Its `app_transactions` must be empty.
            dry_run: whether to commit nothing. The metrics then describe what would be done.

        Returns:
            The metrics under the JVM connector's names: `tableSizeAfterRestore`, `numOfFilesAfterRestore`,
            `numRemovedFiles`, `numRestoredFiles`, `removedFilesSize`, `restoredFilesSize`; and `numMissingFiles`, the
            number of files that were left out. If the table already equals that version, nothing is committed.

        Raises:
            VersionNotFoundError: there is no such version or time.
            InvalidArgumentError: the table is append-only, or is pinned to a version.
            MissingFileError: files of the earlier version no longer exist. The message names them.
            CommitConflictError: the table has changed, or a VACUUM may still be deleting the files.
        """
        snapshot = self._newest_to_change()
        if isinstance(target, (str, datetime)):
            timestamp = timestamp_argument(target, "target")
            earlier, asked = snapshot.at(None, timestamp), str(target)
        else:
            number = required_version(target, "target")
            earlier, asked = snapshot.at(number, None), None
        metrics, version = _internal.restore(
            snapshot,
            earlier,
            asked,
            ignore_missing_files,
            protocol_downgrade_allowed,
            dry_run,
            commit_arguments(commit_properties),
        )
        self._has_committed(version)
        return metrics

    @property
    def optimize(self) -> TableOptimizer:
        """Operations that rewrite the files of the table in a better layout: `optimize.compact()`, `z_order()`,
        `cluster()`.
        """
        return TableOptimizer(self)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._has_catalog:
            refused = UnsupportedFeatureError("a table that was opened with staged commits cannot be pickled")
            raise hinted(refused, "open it in the other process with the commits that the catalog then lists")
        opened, provider = self._move(caught_up), self._credential_provider
        snapshot = opened.snapshot
        if provider is not None and is_foreign(provider):
            refused = UnsupportedFeatureError(
                f"a table with credentials of type {type(provider).__name__} cannot be pickled, because they may "
                "hold secrets"
            )
            raise hinted(refused, "pass a function that makes them as credential_provider")
        place = (snapshot.uri, snapshot.version, snapshot.allowed_roots, snapshot.table_id)
        return _reopen, (type(self), *place, provider, opened.seen, opened.is_pinned)

    def __copy__(self) -> "DeltaTable":
        """Returns another `DeltaTable` at the same version. Changes of one do not affect the other."""
        table = type(self).__new__(type(self))
        table.__dict__.update(self.__dict__)
        return table

    def __deepcopy__(self, _: dict[int, Any]) -> "DeltaTable":
        """Does the same as `__copy__`, because the parts that both tables share are immutable."""
        return self.__copy__()

    def __repr__(self) -> str:
        if "_opened" not in self.__dict__:
            return "DeltaTable(not opened)"  # A debugger may show an object whose `__init__` has raised an error.
        return f"DeltaTable('{self.table_uri}', version={self.version()})"

    def _repr_html_(self) -> str | None:
        """Returns the table as HTML for notebooks: size, columns, and last commits."""
        from deltalog.table.notebook import table_html  # Imported here because only notebooks need it.

        return table_html(self) if "_opened" in self.__dict__ else None


def _reopen(
    kind: type[DeltaTable],
    table_uri: str,
    version: int,
    allowed_roots: list[str],
    table_id: str,
    credential_provider: CredentialProvider | None,
    seen: int,
    is_pinned: bool,
) -> DeltaTable:
    """Opens a table that was pickled, at the same version."""
    snapshot = _internal.Snapshot.open(
        table_uri,
        version=version,
        storage_options=store_argument(table_uri, None, credential_provider),
        allowed_roots=allowed_roots,
        table_id=table_id,
    )
    opened = Opened(snapshot, seen, is_pinned)
    return kind._at(opened, has_catalog=False, credential_provider=credential_provider)


def ensure_no_options(**options: object) -> None:
    """Refuses storage options and credentials for a `DeltaTable`, which was opened with its own."""
    for option, passed in options.items():
        if passed:
            refused = InvalidArgumentError(f"{option} cannot be passed with a table, which has its own")
            raise hinted(refused, f"pass {option} where the table is opened")


def target_argument(
    table_or_uri: "str | os.PathLike[str] | DeltaTable",
    storage_options: Mapping[str, str] | None,
    credential_provider: CredentialProvider | None,
    mode: str,
    name: str = "table_or_uri",
) -> tuple[str, StoreOptions, _internal.Snapshot | None]:
    """Returns the location to write to with `mode`, the options of its store, and the version on which the write is
    based.
    """
    if not isinstance(table_or_uri, DeltaTable):
        location = location_argument(table_or_uri, name)
        return location, store_argument(location, storage_options, credential_provider), None
    ensure_no_options(storage_options=storage_options, credential_provider=credential_provider)
    return table_or_uri.table_uri, StoreOptions({}), table_or_uri._base_of_write(mode)
