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
    """The arguments of `convert_to_delta`, as the binary takes them."""

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
        """Commits the files as version 0, and returns the version. Returns None if a table exists by now and the mode
        is `ignore`.

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

    All files become part of the table, except for those that begin with `_` or `.`, or are in such directories,
    and empty ones; links to directories are not followed. Their footers give the schema and the statistics.
    Columns that some files lack are NULL there; `byte`, `short` and `integer` become the widest of them. Nothing may
    write to the directory at the same time: later files are not part of the table, and VACUUM deletes them.

    Args:
        uri: a path, or a URL.
        mode: what to do if there is a table: fail (`error`), or open it as it is (`ignore`).
        schema: the columns of the table other than its partition columns: a `Schema`, or anything with
            `__arrow_c_schema__`. Files may lack some of them, but have no others. If None, they are taken from the
            files.
        partition_by: the partition columns with their types: a `Schema`, or anything with `__arrow_c_schema__`, such as
            a `pyarrow.Schema`. If None, they are those that the directories name (`column=value`), and their types are
            inferred from the values as Spark does.
        partition_strategy: how partitions are named; `hive` is the only way.
        files: the files of the table, for example from a manifest, instead of all files of the directory: an Arrow
            stream with the columns `path` (relative to `uri`, or a full path below it, not encoded), `size` and
            `modification_time` (milliseconds since the epoch, or a timestamp). With partition columns also
            `partition_values`, a map of texts in the form of the log, or a struct with a field for each column;
            directories do not matter then.
        collect_stats: whether bounds and numbers of NULLs are taken from the footers. The numbers of rows always are.
        time_zone: the zone of timestamps in the names of directories that have none: a region, or an offset such as
            `+02:00`.
        name: the name of the table.
        description: its description.
        configuration: its properties. Columns cannot be mapped by a conversion.
        storage_options: options of the store, see `DeltaTable`.
        credential_provider: what returns credentials for the store, see `DeltaTable`.
        commit_properties: what to record with the commit. Its `app_transactions` must be empty.

    Raises:
        TableAlreadyExistsError: there is a table, and the mode is `error`.
        InvalidArgumentError: there are no files, or the partition columns differ from the files', or a value is
            not of its type, or there is another table inside of the directory. The message names the paths.
        SchemaMismatchError: a column has different types in two files, or no table can have it.
        CorruptDataError: a file is not Parquet.
        UnsupportedFeatureError: a column has a type that no table has, or a property cannot be set by a conversion.
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
    """Makes a plan of what `convert_to_delta` would commit. Returns None if a table exists and the mode is `ignore`.

    Arguments and errors are the same as in `convert_to_delta`. The plan can be inspected, and carried out with
    `commit()`.
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
