"""Reads tables as Dask DataFrames, `deltalog.dask.read(table)`, and writes them, `deltalog.dask.write(frame, table)`.

Each partition of a frame is a task of the table's scan. A worker reads it with only the columns that the computation
uses. In a write, workers write the files of their partitions, and one commit adds all files to the table. Requires Dask
2025.1 or newer.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from deltalog._internal import AlreadyApplied, DistributedWrite, Fragment, WriteTask
from deltalog.arguments import Names, columns_argument, whole_argument
from deltalog.arrow_types import ArrowSchemaExportable
from deltalog.conditions import Location
from deltalog.credentials import CredentialProvider
from deltalog.errors import wrong_argument
from deltalog.extras import required
from deltalog.filters import Filter
from deltalog.parts import Credentials, Parts, committed
from deltalog.schema import Schema
from deltalog.table.tasks import ScanTask

if TYPE_CHECKING:
    import dask.dataframe
    import pandas
    import pyarrow

__all__ = ["read", "write"]

_INSTALL = "pip install 'deltalog[dask]'"


def read(
    table: Location,
    columns: Names | None = None,
    predicate: Filter | None = None,
    *,
    partitions: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    credential_provider: CredentialProvider | None = None,
) -> "dask.dataframe.DataFrame":
    """Returns the rows of a table as a Dask DataFrame.

    The frame always has the rows of the same version: the newest one when it is created, or the version of the
    `DeltaTable`. Workers read only the columns that a computation uses, and do not read the log. The columns have Arrow
    types (`pandas.ArrowDtype`), so that values and NULL are represented in the same way in all partitions. The order of
    the rows is not defined, and the index of each partition begins at 0.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        columns: the columns to read; None for all columns.
        predicate: selects rows, in SQL or as tuples, as in `DeltaTable.to_arrow`. Files and pages that cannot contain
            such a row are not read. Filters of the frame itself are evaluated after the scan.
        partitions: the maximum number of partitions; there are fewer if there are fewer files. By default one for each
            64 MiB of files.
        storage_options: the options of the store, for a path or URL, and for the workers. Dask sends them in its
            graph; without them, workers use the credentials of their own environment.
        credential_provider: provides credentials for the store, see `DeltaTable`. It is sent to the workers, too.

    Raises:
        ExtraRequiredError: Dask is not installed.
        InvalidArgumentError: there is no such column, or the predicate does not fit the schema.
        NotATableError: there is no table.
    """
    frames = _dask()
    parts = Parts.of(table, predicate, storage_options, credential_provider)
    names = columns_argument(columns)
    meta = _to_pandas(parts.schema(names).empty_table())
    if partitions is not None:
        partitions = whole_argument(partitions, "partitions", "a whole number from 1", 1)
    tasks = parts.tasks(partitions, names)
    if not tasks:
        return frames.from_pandas(meta, npartitions=1)
    return frames.from_map(
        _read, tasks, meta=meta, credentials=parts.credentials, columns=list(meta.columns), label="deltalog"
    )


def write(
    frame: "dask.dataframe.DataFrame",
    table_or_uri: Location,
    schema: Schema | ArrowSchemaExportable | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    credential_provider: CredentialProvider | None = None,
    **options: Any,
) -> int | AlreadyApplied | None:
    """Computes a Dask DataFrame and writes its rows as one commit.

    Workers write files, one or more for each partition, and do not read the log. If anything fails, nothing is
    committed, and the files are deleted after all workers have ended. The index is not written; call `reset_index()`
    first if you need it as columns.

    Args:
        frame: the frame. Its rows may have been read from the same table.
        table_or_uri: as for `write_deltalake`.
        schema: the schema of the rows: a `Schema`, or anything with `__arrow_c_schema__`. By default, the schema of the
            table, or of the frame if there is no table yet or `schema_mode` is given. A frame does not have the types
            of columns of Python objects; these become strings.
        storage_options: the options of the store, for a path or URL, and for the workers. Dask sends them in its
            graph; without them, workers use the credentials of their own environment.
        credential_provider: provides credentials for the store, see `DeltaTable`. It is sent to the workers, too.
        options: more arguments of `begin_write`, such as `mode="append"` or `partition_by`.

    Returns:
        The version that was committed. If the write was skipped, returns None or an `AlreadyApplied`, as
        `write_deltalake` does, and the frame is not computed.

    Raises:
        ExtraRequiredError: Dask is not installed.
        DeltaError: the same errors as `begin_write` and `DistributedWrite.commit`. An error of the computation itself
            is raised unchanged.
    """
    frames = _dask()
    if not isinstance(frame, frames.DataFrame):
        raise wrong_argument("frame", frame, "a Dask DataFrame")
    credentials = Credentials(storage_options, credential_provider)

    def write_parts(write: DistributedWrite) -> list[Fragment]:
        delayed: Any = required("dask.delayed", "deltalog.dask", _INSTALL)
        written = delayed.delayed(_write, pure=False)
        parts = frame.to_delayed()
        tasks = write.tasks(len(parts))
        return _computed([written(part, task, credentials) for part, task in zip(parts, tasks, strict=True)])

    return committed(table_or_uri, schema, lambda: _schema(frame), credentials, options, write_parts)


def _dask() -> Any:
    """Returns the module `dask.dataframe`."""
    required("dask", "deltalog.dask", _INSTALL)
    return required("dask.dataframe", "deltalog.dask", _INSTALL)


def _read(task: ScanTask, columns: list[str], credentials: Credentials) -> "pandas.DataFrame":
    """Reads a partition. Dask passes the columns that a computation uses, because this function has the parameter
    `columns`.
    """
    import pyarrow

    return _to_pandas(pyarrow.table(credentials.read(task, columns)))


def _to_pandas(rows: "pyarrow.Table") -> "pandas.DataFrame":
    import pandas

    frame: pandas.DataFrame = rows.to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)
    return frame


def _schema(frame: "dask.dataframe.DataFrame") -> "pyarrow.Schema":
    """Returns the schema of a frame's rows, as far as it is known before the frame is computed."""
    import pyarrow

    utilities: Any = required("dask.dataframe.utils", "deltalog.dask", _INSTALL)
    return pyarrow.Schema.from_pandas(utilities.meta_nonempty(frame._meta), preserve_index=False)


def _write(frame: "pandas.DataFrame", task: WriteTask, credentials: Credentials) -> Fragment:
    """Writes the files of a partition."""
    import pyarrow

    return task.write(pyarrow.Table.from_pandas(frame, preserve_index=False), *credentials)


def _computed(parts: list[Any]) -> list[Fragment]:
    """Computes all parts. Returns, or raises an error, only after all workers have stopped writing."""
    dask: Any = required("dask", "deltalog.dask", _INSTALL)
    base: Any = required("dask.base", "deltalog.dask", _INSTALL)
    threaded: Any = required("dask.threaded", "deltalog.dask", _INSTALL)
    scheduler = base.get_scheduler(collections=parts)
    client = getattr(scheduler, "__self__", None)
    if client is not None:  # In a cluster, the other workers continue when one fails.
        distributed: Any = required("distributed", "deltalog.dask", _INSTALL)
        futures = client.compute(parts)
        distributed.wait(futures)
        fragments: list[Fragment] = client.gather(futures)
        return fragments
    if scheduler is threaded.get:  # The other threads continue, too: this waits for all of them.
        count = dask.config.get("num_workers", None) or dask.system.CPU_COUNT
        with ThreadPoolExecutor(count) as pool:
            return list(dask.compute(*parts, scheduler=pool))
    return list(dask.compute(*parts))
