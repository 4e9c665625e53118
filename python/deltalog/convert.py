"""CONVERT: turns a directory of Parquet files into a table, in place."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from deltalog import _internal
from deltalog.arguments import (
    TableOptions,
    location_argument,
    store_argument,
    stream_argument,
    table_options,
)
from deltalog.arrow_types import ArrowSchemaExportable, ArrowStreamExportable
from deltalog.checked import checked
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.credentials import CredentialProvider
from deltalog.html import Facts
from deltalog.interrupts import after_commit
from deltalog.schema import Schema, schema_argument
from deltalog.table import DeltaTable

__all__ = [
    "ConversionPlan",
    "ConvertArguments",
    "convert_to_delta",
    "convert_to_deltalake",
    "plan_conversion",
]


class ConvertArguments(NamedTuple):
    """The arguments of `convert_to_delta`, as the compiled module expects them."""

    mode: str
    options: TableOptions
    partition_by: str | None = None
    time_zone: str = "UTC"
    statistics: bool = True
    columns: str | None = None
    files: object | None = None


class ConversionPlan(Facts):
    """The plan of a conversion, made by `plan_conversion`. Nothing is committed yet."""

    def __init__(self, plan: _internal.ConversionPlan) -> None:
        self._plan = plan

    @property
    def num_files(self) -> int:
        """The number of files."""
        return self._plan.num_files

    @property
    def size_in_bytes(self) -> int:
        """The total size of the files in bytes."""
        return self._plan.size_in_bytes

    @property
    def partition_columns(self) -> list[str]:
        """The partition columns."""
        return self._plan.partition_columns

    def schema(self) -> Schema:
        """Returns the schema of the table, with the partition columns at its end."""
        return Schema.from_json(self._plan.schema_json)

    def files(self) -> _internal.ArrowStream:
        """Returns the files as an Arrow stream, one row per file.

        The columns are `path` (a URI, as in the log), `size`, `modification_time`, `partition_values` (a map of texts)
        and `stats` (JSON).
        """
        return self._plan.files()

    def commit(self) -> int | None:
        """Commits the files as version 0, and returns the version. Returns None if another writer has created a table
        since the plan was made, and the mode is `ignore`.

        Raises:
            TableAlreadyExistsError: another writer has created a table since.
        """
        return self._plan.commit()

    def _facts(self) -> Iterator[tuple[str, object]]:
        for name in ("num_files", "size_in_bytes", "partition_columns"):
            yield name, getattr(self, name)
        yield "columns", {field.name: field.type for field in self.schema().fields}

    def __repr__(self) -> str:
        return (
            f"ConversionPlan(num_files={self.num_files}, size_in_bytes={self.size_in_bytes}, "
            f"partition_columns={self.partition_columns!r})"
        )


@checked
def convert_to_delta(
    uri: "str | os.PathLike[str]",
    *,
    mode: Literal["error", "ignore"] = "error",
    schema: Schema | ArrowSchemaExportable | None = None,
    partition_by: Schema | ArrowSchemaExportable | None = None,
    partition_strategy: Literal["hive"] | None = None,
    files: ArrowStreamExportable | None = None,
    collect_stats: bool = True,
    time_zone: str = "UTC",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_properties: CommitProperties | None = None,
    credential_provider: CredentialProvider | None = None,
) -> DeltaTable:
    """Turns a directory of Parquet files into a table, in one commit, and opens it. The files are not changed.

    All files become part of the table, except for empty files, and files or directories whose names begin with `_` or
    `.`; links to directories are not followed. The schema and the statistics come from the footers of the files. If a
    file lacks a column, its rows have NULL. If a column is `byte`, `short` or `integer` in different files, it gets the
    widest of their types. No other program may write to the directory at the same time: files that are added later are
    not part of the table, and VACUUM deletes them.

    Args:
        uri: a path, or a URL.
        mode: what to do if there is already a table: fail (`error`), or open it unchanged (`ignore`).
        schema: the columns of the table other than its partition columns: a `Schema`, or anything with
            `__arrow_c_schema__`. Files may lack some of these columns, but must not have others. By default, the
            columns come from the files.
        partition_by: the partition columns with their types: a `Schema`, or anything with `__arrow_c_schema__`, such as
            a `pyarrow.Schema`. By default, they come from the names of the directories (`column=value`), and their
            types are inferred from the values as in Spark.
        partition_strategy: how partitions are named; only `hive` is supported.
        files: the files of the table, for example from a manifest, instead of all files of the directory: an Arrow
            stream with the columns `path` (relative to `uri`, or a full path below it, not encoded), `size` and
            `modification_time` (milliseconds since the epoch, or a timestamp). If the table has partition columns, the
            stream also has the column `partition_values`: a map of strings, written as in the log, or a struct with a
            field for each partition column. The names of directories are then ignored.
        collect_stats: whether minima, maxima and counts of NULLs are taken from the footers. Row counts always are.
        time_zone: the time zone of timestamps without a zone in the names of directories: a region, or an offset such
            as `+02:00`.
        name: the name of the table.
        description: the description of the table.
        configuration: the properties of the table. Column mapping cannot be enabled by a conversion.
        storage_options: storage options, see `DeltaTable`.
        credential_provider: provides credentials for the store, see `DeltaTable`.
        commit_properties: what to record with the commit. Its `app_transactions` must be empty.

    Raises:
        TableAlreadyExistsError: there is a table, and the mode is `error`.
        InvalidArgumentError: there are no files, the partition columns differ from the files, a partition value does
            not have its type, or there is another table inside the directory. The message names the paths.
        SchemaMismatchError: a column has different types in two files, or is not allowed in a table.
        CorruptDataError: a file is not Parquet.
        UnsupportedFeatureError: a column has a type that Delta does not support, or a property cannot be set by a
            conversion.
    """
    plan = plan_conversion(
        uri,
        mode=mode,
        schema=schema,
        partition_by=partition_by,
        partition_strategy=partition_strategy,
        files=files,
        collect_stats=collect_stats,
        time_zone=time_zone,
        name=name,
        description=description,
        configuration=configuration,
        storage_options=storage_options,
        commit_properties=commit_properties,
        credential_provider=credential_provider,
    )
    committed = None if plan is None else plan.commit()
    location = location_argument(uri, "uri")
    options = store_argument(location, storage_options, credential_provider)
    with after_commit(lambda: _internal.canonical_uri(location, options), committed):
        return DeltaTable(uri, storage_options=storage_options, credential_provider=credential_provider)


@checked
def plan_conversion(
    uri: "str | os.PathLike[str]",
    *,
    mode: Literal["error", "ignore"] = "error",
    schema: Schema | ArrowSchemaExportable | None = None,
    partition_by: Schema | ArrowSchemaExportable | None = None,
    partition_strategy: Literal["hive"] | None = None,
    files: ArrowStreamExportable | None = None,
    collect_stats: bool = True,
    time_zone: str = "UTC",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_properties: CommitProperties | None = None,
    credential_provider: CredentialProvider | None = None,
) -> ConversionPlan | None:
    """Returns a plan of what `convert_to_delta` would commit; None if a table exists and the mode is `ignore`.

    Takes the same arguments, and raises the same errors, as `convert_to_delta`. You can inspect the plan, and create
    the table with its method `commit()`.
    """
    location = location_argument(uri, "uri")
    arguments = ConvertArguments(
        mode,
        table_options(None, configuration, name, description),
        _schema_json(partition_by, "partition_by"),
        time_zone,
        collect_stats,
        _schema_json(schema, "schema"),
        None if files is None else stream_argument(files, "files"),
    )
    plan = _internal.plan_conversion(
        location,
        arguments,
        commit_arguments(commit_properties),
        store_argument(location, storage_options, credential_provider),
    )
    return None if plan is None else ConversionPlan(plan)


@checked
def convert_to_deltalake(
    uri: "str | os.PathLike[str]",
    mode: Literal["error", "ignore"] = "error",
    partition_by: Schema | ArrowSchemaExportable | None = None,
    partition_strategy: Literal["hive"] | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
) -> None:
    """Does the same as `convert_to_delta`, with the arguments of `deltalake`."""
    convert_to_delta(
        uri,
        mode=mode,
        partition_by=partition_by,
        partition_strategy=partition_strategy,
        collect_stats=collect_stats,
        name=name,
        description=description,
        configuration=configuration,
        storage_options=storage_options,
        commit_properties=commit_properties,
    )


def _schema_json(schema: Any, name: str) -> str | None:
    return None if schema is None else schema_argument(schema, name).to_json()
