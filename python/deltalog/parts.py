"""Divides the rows of a table into parts, which the workers of Dask, Ray and Daft read or write."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog import _internal
from deltalog._internal import AlreadyApplied, DistributedWrite, Fragment
from deltalog.arguments import location_argument, store_argument
from deltalog.arrow_types import ArrowSchemaExportable
from deltalog.conditions import Location
from deltalog.credentials import CredentialProvider
from deltalog.distributed import begin_write
from deltalog.filters import Filter, filter_argument
from deltalog.schema import Schema
from deltalog.table.delta_table import DeltaTable
from deltalog.table.tasks import ScanTask, tasks_of

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Credentials", "Parts", "committed"]

_SIZE_OF_PART = 64 * 1024 * 1024
"""The size of a part's files in bytes, if the caller does not set the number of parts."""


class Credentials(NamedTuple):
    """The storage options and the credential provider with which workers open the store. They are sent with the tasks,
    because a task itself contains no credentials.
    """

    storage_options: Mapping[str, str] | None
    credential_provider: CredentialProvider | None

    def __repr__(self) -> str:
        return "Credentials(…)"

    def read(self, task: ScanTask, columns: list[str] | None) -> _internal.ArrowStream:
        """Returns the rows of a task as an Arrow stream."""
        return task.read(self.storage_options, credential_provider=self.credential_provider, columns=columns)

    def batches(self, task: ScanTask, columns: list[str] | None) -> "Iterator[pyarrow.RecordBatch]":
        """Yields the rows of a task, batch by batch."""
        import pyarrow

        for batch in self.read(task, columns):
            yield pyarrow.record_batch(batch)


class Parts(NamedTuple):
    """The rows of a table at one version for which a condition is true."""

    snapshot: _internal.Snapshot
    is_pinned: bool
    """Whether the caller has chosen the version."""
    condition: str | None
    credentials: Credentials

    @classmethod
    def of(
        cls,
        table: Location,
        predicate: Filter | None,
        storage_options: Mapping[str, str] | None,
        credential_provider: CredentialProvider | None,
    ) -> "Parts":
        """Returns the rows of the version that a table shows, or of the newest version at a location."""
        if isinstance(table, DeltaTable):
            # The table was opened with its own options, which cannot be read from it.
            store_argument(table.table_uri, storage_options, credential_provider)
        else:
            table = DeltaTable(
                location_argument(table, "table"),
                storage_options=storage_options,
                credential_provider=credential_provider,
            )
        snapshot = table._rows
        condition = filter_argument(predicate, Schema._of(snapshot.schema_json), "predicate")
        credentials = Credentials(storage_options, credential_provider)
        return cls(snapshot, table._opened.is_pinned, condition, credentials)

    def __reduce__(self) -> tuple[Any, ...]:
        snapshot = self.snapshot
        place = (snapshot.uri, snapshot.version, snapshot.allowed_roots, snapshot.table_id)
        return _reopened, (place, self.is_pinned, self.condition, self.credentials)

    def schema(self, columns: list[str] | None) -> "pyarrow.Schema":
        """Returns the schema of the rows. Does not list files. Raises an error if the condition is invalid."""
        import pyarrow

        empty = self.snapshot.scan(columns, self.condition, False, False, self.is_pinned, 0)
        return pyarrow.schema(empty)

    def size(self) -> int:
        """Returns the size in bytes of the files that may have such rows."""
        _, size, _ = self.snapshot.scan_size(self.condition)
        return size

    def tasks(self, count: int | None, columns: list[str] | None) -> list[ScanTask]:
        """Returns at most `count` tasks, which together read exactly these rows. By default there is one for each
        64 MiB of files.
        """
        if count is None:
            count = max(1, -(-self.size() // _SIZE_OF_PART))
        return tasks_of(self.snapshot, count, columns, self.condition)


def _reopened(
    place: tuple[str, int, list[str], str],
    is_pinned: bool,
    condition: str | None,
    credentials: Credentials,
) -> Parts:
    """Opens the version again in the process that unpickles the `Parts`, with the credentials that are sent with the
    tasks.
    """
    table_uri, version, allowed_roots, table_id = place
    snapshot = _internal.Snapshot.open(
        table_uri,
        version=version,
        storage_options=store_argument(table_uri, *credentials),
        allowed_roots=allowed_roots,
        table_id=table_id,
    )
    return Parts(snapshot, is_pinned, condition, credentials)


def committed(
    table_or_uri: Location,
    schema: Schema | ArrowSchemaExportable | None,
    inferred: Callable[[], ArrowSchemaExportable],
    credentials: Credentials,
    options: Mapping[str, Any],
    write: Callable[[DistributedWrite], Iterable[Fragment]],
) -> int | AlreadyApplied | None:
    """Writes the rows of all workers as one commit. If `write` fails, their files are deleted.

    Args:
        table_or_uri: as for `write_deltalake`.
        schema: the schema of the rows. By default it is the table's schema, or the result of `inferred` if there is no
            table yet or the schema may differ.
        inferred: a function that computes the schema of the rows.
        credentials: the credentials of the store.
        options: more arguments of `begin_write`.
        write: a function that computes the rows on workers, and returns the fragments that they have written.
    """
    if isinstance(table_or_uri, DeltaTable):
        is_table, store = True, {}
    else:
        store = credentials._asdict()
        is_table = DeltaTable.is_deltatable(table_or_uri, **store)
    if schema is None and (not is_table or options.get("schema_mode") is not None):
        schema = inferred()
    started: DistributedWrite | AlreadyApplied | None = begin_write(table_or_uri, schema, **options, **store)
    if not isinstance(started, DistributedWrite):
        return started
    with started:
        version = started.commit(write(started))
    if isinstance(table_or_uri, DeltaTable):
        table_or_uri._has_written(version)
    return version
