"""Tables as datasets of Ray: `deltalog.ray.read(table)`, and datasets as tables: `deltalog.ray.write(dataset, table)`.

A read task is a task of a scan, which knows its size and reads the columns and rows that the dataset selects. In a
write, tasks write files, and one commit makes all of them part of the table. Works from Ray 2.60.
"""

from collections.abc import Mapping
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


def read(
    table: Location,
    columns: Names | None = None,
    predicate: Filter | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    credential_provider: CredentialProvider | None = None,
    **options: Any,
) -> "ray.data.Dataset":
    """Returns the rows of a table as a dataset of Ray.

    The dataset keeps the version that is the newest now, or the version that a `DeltaTable` shows. Tasks read only the
    columns that `select_columns` selects, and skip files and pages without rows that `filter(expr=...)` selects. They
    do not read the log. The order of the rows is not defined.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        columns: the columns to read; all if None.
        predicate: selects rows, by SQL or tuples as in `DeltaTable.to_arrow`. Files and pages without such rows are
            not read.
        storage_options: the options of the store, for a path or URL, and for the tasks. Ray sends them with the tasks.
            Without them, tasks use the credentials of their own environment.
        credential_provider: returns credentials for the store, see `DeltaTable`. It is sent with the tasks, too.
        options: more arguments of `ray.data.read_datasource`, such as `override_num_blocks` and `concurrency`.

    Raises:
        ExtraRequiredError: Ray is not installed.
        InvalidArgumentError: there is no such column, or the predicate does not fit the schema.
        NotATableError: there is no table.
    """
    data: Any = required("ray.data", "deltalog.ray", _INSTALL)
    from deltalog.ray_data import TableDatasource

    parts = Parts.of(table, predicate, storage_options, credential_provider)
    names = columns_argument(columns)
    parts.schema(names)  # Raises an error for a wrong argument now.
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
    """Computes a dataset of Ray and writes its rows as one commit.

    Tasks write files, and do not read the log. If anything fails, nothing is committed, and the files are deleted. If
    Ray runs a task twice, the commit keeps the files of one run and deletes those that the other run has written. A
    task that is still running when another task has failed may leave a file that no version contains, until VACUUM
    deletes it.

    Args:
        dataset: the dataset. Its rows may have been read from the same table.
        table_or_uri: as for `write_deltalake`. A table with identity columns that the dataset lacks is refused.
        schema: the schema of the rows: a `Schema`, or anything with `__arrow_c_schema__`. By default it is the table's,
            or the dataset's if there is no table yet or `schema_mode` is given; Ray may have to compute some rows to
            find it out.
        storage_options: the options of the store, for a path or URL, and for the tasks. Ray sends them with the tasks.
            Without them, tasks use the credentials of their own environment.
        credential_provider: returns credentials for the store, see `DeltaTable`. It is sent with the tasks, too.
        ray_remote_args: as in `Dataset.write_datasink`.
        concurrency: as in `Dataset.write_datasink`.
        options: more arguments of `begin_write`, such as `mode="append"` or `partition_by`.

    Returns:
        As `write_deltalake`: the version that was committed, `AlreadyApplied`, or None. In the last two cases there was
        nothing to do, and the dataset was not computed.

    Raises:
        ExtraRequiredError: Ray is not installed.
        DeltaError: as `begin_write` and `DistributedWrite.commit`. An error in a task is raised as an error of Ray.
    """
    data: Any = required("ray.data", "deltalog.ray", _INSTALL)
    from deltalog.ray_data import TableDatasink

    if not isinstance(dataset, data.Dataset):
        raise wrong_argument("dataset", dataset, "a dataset of Ray")
    credentials = Credentials(storage_options, credential_provider)

    def write_parts(write: DistributedWrite) -> list[Fragment]:
        sink = TableDatasink(write.task, credentials)
        dataset.write_datasink(sink, ray_remote_args=dict(ray_remote_args or {}), concurrency=concurrency)
        return sink.fragments

    return committed(table_or_uri, schema, lambda: _schema(dataset), credentials, options, write_parts)


def _schema(dataset: "ray.data.Dataset") -> Any:
    """Returns the schema of the rows of a dataset as Arrow's."""
    import pyarrow

    schema = dataset.schema()
    if schema is None:
        raise wrong_argument(
            "dataset", dataset, "a dataset with columns, or the schema of its rows as schema"
        )
    if isinstance(schema.base_schema, pyarrow.Schema):
        return schema.base_schema
    return pyarrow.schema(list(zip(schema.names, schema.types, strict=True)))
