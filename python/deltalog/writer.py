"""Writing data to a table."""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, overload

from deltalog import _internal
from deltalog._internal import AlreadyApplied
from deltalog.arguments import size_argument, stream_argument, table_options
from deltalog.arrow_types import ArrowData
from deltalog.checked import checked
from deltalog.commit import CommitProperties, WriteArguments, commit_arguments
from deltalog.credentials import CredentialProvider
from deltalog.table.delta_table import DeltaTable, target_argument
from deltalog.writer_properties import WriterProperties, file_format_argument

__all__ = ["write_deltalake"]


@overload
def write_deltalake(
    table_or_uri: "str | os.PathLike[str] | DeltaTable",
    data: ArrowData,
    *,
    mode: Literal["error", "append", "overwrite"] = "error",
    partition_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_properties: None = None,
    partition_overwrite: Literal["static", "dynamic"] = "static",
    predicate: str | None = None,
    schema_mode: Literal["merge", "overwrite"] | None = None,
    target_file_size: int | None = None,
    credential_provider: CredentialProvider | None = None,
    writer_properties: WriterProperties | None = None,
) -> int: ...
@overload
def write_deltalake(
    table_or_uri: "str | os.PathLike[str] | DeltaTable",
    data: ArrowData,
    *,
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    partition_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_properties: CommitProperties | None = None,
    partition_overwrite: Literal["static", "dynamic"] = "static",
    predicate: str | None = None,
    schema_mode: Literal["merge", "overwrite"] | None = None,
    target_file_size: int | None = None,
    credential_provider: CredentialProvider | None = None,
    writer_properties: WriterProperties | None = None,
) -> int | AlreadyApplied | None: ...
@checked
def write_deltalake(
    table_or_uri: "str | os.PathLike[str] | DeltaTable",
    data: ArrowData,
    *,
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    partition_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_properties: CommitProperties | None = None,
    partition_overwrite: Literal["static", "dynamic"] = "static",
    predicate: str | None = None,
    schema_mode: Literal["merge", "overwrite"] | None = None,
    target_file_size: int | None = None,
    credential_provider: CredentialProvider | None = None,
    writer_properties: WriterProperties | None = None,
) -> int | AlreadyApplied | None:
    """Writes `data` as one commit, and creates the table if it does not exist.

    Args:
        table_or_uri: a path, a `file://` URL, or a table. A table passes on the version that was read through it, its
            storage options, its allowed roots and its staged commits. An overwrite replaces exactly the version that
            was read, see `DeltaTable`: if another writer has added or removed files since, it raises
            `CommitConflictError`. An append goes on top of the newest version. The table is then at the version that
            was committed, or at a later one with the same rows. A table that is pinned to a version is refused.
        data: anything with `__arrow_c_stream__`: a pyarrow table or reader, a polars or pandas 3 frame, a duckdb
            relation. It is read batch by batch; memory stays bounded. Columns are matched by name, ignoring case;
            missing ones become null. A value is either stored unchanged or refused: nothing is rounded or cut off. If
            the data is the stream of `to_arrow` of the same table, or the table itself, the write depends on the rows
            that were read: it raises `CommitConflictError` if another commit has changed them since, or has added such
            rows (blind appends count only if the table's `delta.isolationLevel` is `Serializable`). This does not apply
            to a table that was deliberately opened at a version (`version=...`). deltalog cannot see how other
            libraries have computed rows: use `DeltaTable.merge` to insert rows that must not exist yet.
        mode: what to do if a table exists: fail, append to it, replace its rows, or leave it unchanged.
        partition_by: columns to partition a new table by. For an existing table, they must be its partition columns.
            The log has no empty text: `""` in a partition column is read as NULL (protocol: "Partition Value
            Serialization").
        name: the name of a new table. An existing table keeps its name.
        description: the description of a new table. An existing table keeps its description.
        configuration: the properties of a new table. An existing table keeps its properties.
        user_metadata: your own words about the commit, shown by `history()` as `userMetadata`.
        partition_overwrite: what the mode `overwrite` replaces: all rows (`static`), or the rows of the partitions
            that `data` has rows for (`dynamic`). Without rows, the latter changes nothing.
        predicate: with the mode `overwrite`, a condition in Spark's SQL: only the rows for which it is true are
            replaced, and every row of `data` must meet it. Files that also contain other rows get deletion vectors if
            the table has them (`delta.enableDeletionVectors`), and are rewritten otherwise. Times without a zone are in
            UTC.
        schema_mode: `merge` adds columns and nested fields that the table lacks, which are null in older rows, and
            makes types wider if the table allows it (`delta.enableTypeWidening`). `overwrite`, with the mode
            `overwrite` of all rows, gives the table the schema of `data`, and the partitioning `partition_by` if it is
            given; without it the partition columns stay (the JVM connector drops them then). Properties, constraints
            and the table's id stay as well: `DeltaTable.create(mode="overwrite", data=...)` replaces them too. Schema
            and rows are one commit.
        target_file_size: the size in bytes at which a file is closed and the next one is begun; by default the
            table's (`delta.targetFileSize`), or 128 MiB.
        storage_options: options of the store, see `DeltaTable`. A `DeltaTable` has its own.
        credential_provider: what returns credentials for the store, see `DeltaTable`.
        commit_properties: what to record with the commit in addition to its data.
        writer_properties: how the files are encoded: codec, sizes of row groups and pages, statistics, dictionaries,
            Bloom filters. Without it, the codec is the table's (`delta.parquet.compression.codec`), or Snappy.

    If anything fails, including the source of the data, or on Ctrl-C, nothing is committed and the files written so far
    are deleted. If a Ctrl-C comes too late for that, it raises `CommittedInterrupt`, which has the version.

    Returns:
        The version that was committed; None if the mode is `ignore` and a table exists; an `AlreadyApplied` if the
        table has recorded this write of an application (`CommitProperties.app_transactions`), so that there was nothing
        to do.

    Raises:
        TableAlreadyExistsError: with the mode `error`.
        SchemaMismatchError: the data do not fit the table.
        InvalidArgumentError: an argument cannot be right, a row does not meet the predicate, the data stream
            failed, the table is append-only and was to be overwritten, or it is pinned to a version.
        CommitConflictError: another writer was faster and the two exclude each other. Nothing was committed; `reason`
            states why, and `version` is the other writer's.
        CommitStateUnknownError: it is not known whether the commit succeeded; `DeltaTable.find_commit` finds out.
        UnsupportedFeatureError: the table has a feature that cannot be written yet.
        UnavailableError: a file cannot be written. Rows of many partitions that do not fit in memory wait in a
            temporary file in the directory that the environment variable `TMPDIR` names.
    """
    arguments = WriteArguments(
        mode,
        table_options(partition_by, configuration, name, description),
        commit_arguments(commit_properties, user_metadata),
        partition_overwrite,
        predicate,
        schema_mode,
        size_argument(target_file_size, "target_file_size"),
        file_format_argument(writer_properties),
    )
    if isinstance(table_or_uri, DeltaTable) and data is table_or_uri:
        data = table_or_uri.to_arrow()  # Before it is asked what was read.
    stream = stream_argument(data)
    uri, options, base = target_argument(table_or_uri, storage_options, credential_provider, mode)
    answer = _internal.write_stream(uri, stream, arguments, storage_options=options, base=base)
    if isinstance(table_or_uri, DeltaTable):
        table_or_uri._has_written(answer)
    return answer
