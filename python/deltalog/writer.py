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
        table_or_uri: a path, a URL, or a `DeltaTable`, whose storage options, allowed roots and staged commits are
            used. An overwrite through a `DeltaTable` replaces exactly the version that was read through it (see
            `DeltaTable`): if another writer has added or removed files since, it raises `CommitConflictError`. An
            append adds rows to the newest version. The `DeltaTable` is then at the version that was committed, or at a
            later version with the same rows. A `DeltaTable` that is pinned to a version is refused.
        data: anything with `__arrow_c_stream__`: a pyarrow table or reader, a polars or pandas 3 frame, a duckdb
            relation. It is read batch by batch, in bounded memory. Columns are matched by name, ignoring case; missing
            columns become null. A value is either stored unchanged or refused: nothing is rounded or cut off. If the
            data is the stream of `to_arrow` of the same table, or the table itself, the write depends on the rows that
            were read: it raises `CommitConflictError` if another commit has changed them since, or has added such rows
            (blind appends count only if the table's `delta.isolationLevel` is `Serializable`). This does not apply to
            rows of a table that was opened at a version on purpose (`version=...`). deltalog cannot see how other
            libraries have computed rows: use `DeltaTable.merge` to insert rows that must not exist yet.
        mode: what to do if a table exists: fail, append to it, replace its rows, or leave it unchanged.
        partition_by: columns to partition a new table by. For an existing table, they must be its partition columns.
            In partition columns, the log cannot distinguish the empty string from NULL: `""` is read as NULL (protocol:
            "Partition Value Serialization").
        name: the name of a new table. An existing table keeps its name.
        description: the description of a new table. An existing table keeps its description.
        configuration: the properties of a new table. An existing table keeps its properties.
        user_metadata: a comment on the commit, which `history()` shows as `userMetadata`.
        partition_overwrite: what the mode `overwrite` replaces: all rows (`static`), or only the partitions for which
            `data` has rows (`dynamic`). If `data` has no rows, `dynamic` changes nothing.
        predicate: with the mode `overwrite`, a condition in Spark's SQL: only the rows for which it is true are
            replaced, and every row of `data` must meet it. Files that also contain other rows get deletion vectors if
            the table has them (`delta.enableDeletionVectors`), and are rewritten otherwise. Times without a zone are in
            UTC.
        schema_mode: `merge` adds columns and nested fields that the table lacks, which are null in older rows, and
            widens types if the table allows it (`delta.enableTypeWidening`). `overwrite`, if the mode `overwrite`
            replaces all rows, gives the table the schema of `data`, and the partition columns `partition_by`; without
            `partition_by` the table keeps its partition columns (the JVM connector drops them). The table also keeps
            its properties, constraints and id; to replace these as well, use `DeltaTable.create(mode="overwrite",
            data=...)`. The schema and the rows are changed in one commit.
        target_file_size: the size in bytes at which a file is closed and the next one is begun; by default the table's
            `delta.targetFileSize`, or 128 MiB.
        storage_options: storage options, see `DeltaTable`. A `DeltaTable` has its own.
        credential_provider: provides credentials for the store, see `DeltaTable`.
        commit_properties: what to record with the commit in addition to its data.
        writer_properties: how the files are encoded: codec, sizes of row groups and pages, statistics, dictionaries,
            Bloom filters. By default, the codec is the table's `delta.parquet.compression.codec`, or Snappy.

    If anything fails, including the source of the data, or if Ctrl-C is pressed, nothing is committed and the files
    written so far are deleted. If Ctrl-C is pressed after the commit, `CommittedInterrupt` is raised, which has the
    committed version.

    Returns:
        The version that was committed; None if the mode is `ignore` and a table exists; an `AlreadyApplied` if the
        table has recorded this write of an application (`CommitProperties.app_transactions`), so that there was nothing
        to do.

    Raises:
        TableAlreadyExistsError: a table exists, and the mode is `error`.
        SchemaMismatchError: the data do not fit the table.
        InvalidArgumentError: an argument is invalid, a row does not meet the predicate, the data stream failed, the
            table is append-only and was to be overwritten, or the table is pinned to a version.
        CommitConflictError: another writer has committed a change that conflicts with this write. Nothing was
            committed; `reason` states why, and `version` is the other writer's version.
        CommitStateUnknownError: it is not known whether the commit succeeded; `DeltaTable.find_commit` finds out.
        UnsupportedFeatureError: the table has a feature that cannot be written yet.
        UnavailableError: a file cannot be written. This may also be the temporary file, in the directory that the
            environment variable `TMPDIR` names, for rows of many partitions that do not fit in memory.
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
        # This comes first, because it marks the open version as read, and an overwrite replaces the version that was
        # read.
        data = table_or_uri.to_arrow()
    stream = stream_argument(data)
    uri, options, base = target_argument(table_or_uri, storage_options, credential_provider, mode)
    answer = _internal.write_stream(uri, stream, arguments, storage_options=options, base=base)
    if isinstance(table_or_uri, DeltaTable):
        table_or_uri._has_written(answer)
    return answer
