"""Tables as Ray datasets: `deltalog.ray.read(table)`, and datasets as tables: `deltalog.ray.write(dataset, table)`.

A read task is a task of deltalog's scan. Its size is known in advance, and it reads only the columns and rows that the
dataset selects. In a write, Ray tasks write files, and one commit adds all of them to the table. Requires Ray 2.60 or
later.
"""

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from deltalog._internal import AlreadyApplied, DistributedWrite, Fragment
from deltalog.arguments import Names, columns_argument
from deltalog.arrow_types import ArrowSchemaExportable
from deltalog.conditions import Location
from deltalog.credentials import CredentialProvider
from deltalog.errors import wrong_argument
from deltalog.extras import required
from deltalog.filters import Filter
from deltalog.parts import Credentials, Parts, committed
from deltalog.schema import Schema

if TYPE_CHECKING:
    import ray.data

__all__ = ["read", "write"]

_INSTALL = "pip install 'ray[data]'"

_SAMPLE = 1000
"""The maximum number of rows that are computed to infer the types of Python objects."""


def read(
    table: Location,
    columns: Names | None = None,
    predicate: Filter | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    credential_provider: CredentialProvider | None = None,
    **options: Any,
) -> "ray.data.Dataset":
    """Returns the rows of a table as a Ray dataset.

    The dataset always reads the version that is the newest at the time of this call, or the version at which the
    `DeltaTable` is opened. Tasks read only the columns that `select_columns` selects, and skip files and pages in which
    no rows meet the condition of `filter(expr=...)`. They do not read the log. The order of the rows is not defined.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        columns: the columns to read; all if None.
        predicate: a condition that selects rows, as SQL or as tuples, as in `DeltaTable.to_arrow`. Files and pages
            without such rows are not read.
        storage_options: the options of the store, for a path or URL, and for the tasks. Ray sends them with the tasks.
            Without them, tasks use the credentials of their own environment.
        credential_provider: returns credentials for the store, see `DeltaTable`. It is sent with the tasks, too.
        options: more arguments of `ray.data.read_datasource`, such as `override_num_blocks` and `concurrency`.

    Raises:
        ExtraRequiredError: Ray is not installed.
        InvalidArgumentError: there is no such column, or the predicate does not fit the schema.
        NotATableError: there is no table.
        TypeError: `ray.data.read_datasource` does not have one of the options.
    """
    data: Any = required("ray.data", "deltalog.ray", _INSTALL)
    from deltalog.ray_data import TableDatasource

    _check_options(data.read_datasource, options)
    parts = Parts.of(table, predicate, storage_options, credential_provider)
    # Raises errors for wrong arguments now, instead of in the tasks. The schema has the names as the table spells them;
    # the caller's may differ in upper and lower case.
    schema = parts.schema(columns_argument(columns))
    names = None if columns is None else schema.names
    dataset: ray.data.Dataset = data.read_datasource(TableDatasource(parts, names), **options)
    return dataset


def write(
    dataset: "ray.data.Dataset",
    table_or_uri: Location,
    schema: Schema | ArrowSchemaExportable | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    credential_provider: CredentialProvider | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    **options: Any,
) -> int | AlreadyApplied | None:
    """Computes a Ray dataset and writes its rows in one commit.

    Tasks write files, and do not read the log. If anything fails, nothing is committed, and the files are deleted. If
    Ray runs a task twice, the commit keeps the files of one run and deletes the files of the other run. If a task is
    still running when another task fails, it may leave a file that does not belong to any version; VACUUM deletes it
    later.

    Args:
        dataset: the dataset. Its rows may have been read from the same table.
        table_or_uri: as for `write_deltalake`. The call fails if the table has identity columns that the dataset lacks.
        schema: the schema of the rows: a `Schema`, or anything with `__arrow_c_schema__`. The default is the schema of
            the table, or the schema of the dataset if there is no table yet or `schema_mode` is given; Ray may have to
            compute some rows to determine it.
        storage_options: the options of the store, for a path or URL, and for the tasks. Ray sends them with the tasks.
            Without them, tasks use the credentials of their own environment.
        credential_provider: returns credentials for the store, see `DeltaTable`. It is sent with the tasks, too.
        ray_remote_args: as in `Dataset.write_datasink`.
        concurrency: as in `Dataset.write_datasink`.
        options: more arguments of `begin_write`, such as `mode="append"` or `partition_by`.

    Returns:
        As `write_deltalake`: the committed version, `AlreadyApplied`, or None. For `AlreadyApplied` and None there was
        nothing to do, and the dataset was not computed.

    Raises:
        ExtraRequiredError: Ray is not installed.
        DeltaError: as `begin_write` and `DistributedWrite.commit`. An error in a task is raised as a Ray error.
    """
    data: Any = required("ray.data", "deltalog.ray", _INSTALL)
    from deltalog.ray_data import TableDatasink

    if not isinstance(dataset, data.Dataset):
        raise wrong_argument("dataset", dataset, "a Ray dataset")
    credentials = Credentials(storage_options, credential_provider)

    def write_parts(write: DistributedWrite) -> list[Fragment]:
        sink = TableDatasink(write.task, credentials)
        dataset.write_datasink(sink, ray_remote_args=dict(ray_remote_args or {}), concurrency=concurrency)
        return sink.fragments

    return committed(table_or_uri, schema, lambda: _schema(dataset), credentials, options, write_parts)


def _check_options(function: Any, options: Mapping[str, Any]) -> None:
    """Refuses options that a function does not have: `read_datasource` ignores them, for example a misspelt filter."""
    parameters = signature(function).parameters.values()
    known = {parameter.name for parameter in parameters if parameter.kind is not Parameter.VAR_KEYWORD}
    for name in options:
        if name not in known:
            raise TypeError(f"read() got an unexpected keyword argument {name!r}")


def _schema(dataset: "ray.data.Dataset") -> Any:
    """Returns the Arrow schema of a dataset's rows."""
    import pyarrow

    schema = dataset.schema()
    if schema is not None:
        if isinstance(schema.base_schema, pyarrow.Schema):
            return schema.base_schema
        if all(isinstance(kind, pyarrow.DataType) for kind in schema.types):
            return pyarrow.schema(list(zip(schema.names, schema.types, strict=True)))
        # A pandas frame does not have the types of Python objects, such as strings. Arrow infers them from the values.
        sample = dataset.limit(_SAMPLE)
        for rows in sample.iter_batches(batch_size=None, batch_format="pyarrow"):
            return rows.schema
    raise wrong_argument("dataset", dataset, "a dataset with columns, or the schema of its rows as schema")
