"""Writes whose files come from several processes: `multiprocessing`, Ray, Dask, or jobs on other machines.

    coordinator                                    workers
    write = begin_write("trips", mode="append")
      write.task  (pickled)            ─────────►  fragment = task.write(data)
      write.commit(fragments)          ◄─────────  fragment  (pickled)

A worker needs the task and access to the files of the table. It does not read the table's log, and it commits nothing.
Tasks and fragments contain no credentials. They can be sent as bytes (`pickle`) or as JSON (`to_json()`).
"""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, overload

from deltalog import _internal
from deltalog._internal import AlreadyApplied, DistributedWrite, Fragment, WriteTask
from deltalog.arguments import size_argument, table_options
from deltalog.arrow_types import ArrowSchemaExportable
from deltalog.checked import checked
from deltalog.commit import CommitProperties, WriteArguments, commit_arguments
from deltalog.credentials import CredentialProvider
from deltalog.schema import Schema, schema_argument
from deltalog.table.delta_table import DeltaTable, target_argument
from deltalog.writer_properties import WriterProperties, file_format_argument

__all__ = ["DistributedWrite", "Fragment", "WriteTask", "begin_write"]


@overload
def begin_write(
    table_or_uri: "str | os.PathLike[str] | DeltaTable",
    schema: Schema | ArrowSchemaExportable | None = None,
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
) -> DistributedWrite: ...
@overload
def begin_write(
    table_or_uri: "str | os.PathLike[str] | DeltaTable",
    schema: Schema | ArrowSchemaExportable | None = None,
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
) -> DistributedWrite | AlreadyApplied | None: ...
@checked
def begin_write(
    table_or_uri: "str | os.PathLike[str] | DeltaTable",
    schema: Schema | ArrowSchemaExportable | None = None,
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
) -> DistributedWrite | AlreadyApplied | None:
    """Begins a write whose files come from several processes, and which is committed as one version.

        with begin_write("trips", mode="append") as write:
            with ProcessPoolExecutor() as pool:
                fragments = pool.map(write.task.write, batches)
                version = write.commit(fragments)

    - This function makes all the checks that `write_deltalake` makes before it writes, against the newest version of
      the table. Workers enforce constraints, fill generated and default columns, and convert values in the same way as
      `write_deltalake`.
    - Workers that write rows without the identity columns of the table need one task each, from `write.tasks(count)`.
      The number of the task determines the values.
    - deltalog does not know which rows of the table the workers have read, so an append is blind: it does not conflict
      with changes of the rows from which its data were computed. Use MERGE for such data.
    - All files of the write are in one new directory of the table. The commit deletes the files that no committed
      fragment names. So if a worker ran twice and one of its two fragments is committed, the files of the other run are
      deleted.
    - If the write was not committed, the end of the `with` block aborts it and deletes its files. Without `with`, call
      `abort()`. End all workers first: files that are written later belong to no version.

    The other arguments have the same meaning as in `write_deltalake`.

    Args:
        table_or_uri: as for `write_deltalake`. A `DeltaTable` stays at its version when the write is committed, because
            another process may commit it. Call `update_incremental()` afterwards.
        schema: the schema of the data: a `Schema`, or anything with `__arrow_c_schema__`. A new table gets this schema.
            By default, the schema of the table.

    Returns:
        The write. None if the mode is `ignore` and a table exists. An `AlreadyApplied` if the table has already
        recorded this write of an application. A caller that passes the mode `ignore` or `app_transactions` must check
        the result before using it in a `with` statement.

    Raises:
        NotATableError: there is no table, and no schema to create one with.
        UnsupportedFeatureError: the table has a feature that cannot be written.
        DeltaError: the same errors as `write_deltalake`.
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
    uri, options, base = target_argument(table_or_uri, storage_options, credential_provider, mode)
    json = None if schema is None else schema_argument(schema).to_json()
    return _internal.begin_write(uri, json, arguments, storage_options=options, base=base)
