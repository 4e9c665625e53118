"""The size of a scan, and a scan in parts that other processes read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deltalog import _internal
from deltalog.arguments import Names, columns_argument, store_argument
from deltalog.checked import checks_arguments
from deltalog.credentials import CredentialProvider

__all__ = ["ScanSize", "ScanTask", "tasks_of"]


@dataclass(frozen=True)
class ScanSize:
    """How much a scan has to read; see `DeltaTable.scan_size`."""

    num_files: int
    """The number of files that may contain rows for which the predicate is true."""
    size_in_bytes: int
    """The size of these files."""
    num_rows: int | None
    """The number of rows in these files, not counting deleted rows. Rows for which the predicate is not true are
    included. None if the log lacks the number of rows of at least one file.
    """


@checks_arguments
@dataclass(frozen=True)
class ScanTask:
    """A part of a scan of one version of a table; see `DeltaTable.scan_tasks`.

    A task can be pickled. It contains the location of the table, its schema, the columns, the condition, and some of
    the files, but no credentials. A process that reads a task does not read the log. A task determines which files are
    read, and from which directories, so unpickle tasks only from processes that you trust.
    """

    table_uri: str
    """The location of the table, as a URL."""
    num_files: int
    """The number of files that the task reads."""
    size_in_bytes: int
    """The total size of these files in bytes."""
    num_rows: int | None
    """The number of rows in its files, not counting deleted rows. Rows for which the predicate is not true are
    included. None if the log lacks the number of rows of at least one file.
    """
    _fragment: bytes = field(repr=False)

    def read(
        self,
        storage_options: Mapping[str, str] | None = None,
        *,
        credential_provider: CredentialProvider | None = None,
        columns: Names | None = None,
    ) -> _internal.ArrowStream:
        """Returns the rows as an Arrow stream, as `DeltaTable.to_arrow` does.

        Files, and the rows of a file, are read in their order. Each call reads the files again.

        Args:
            storage_options: storage options, see `DeltaTable`.
            credential_provider: provides credentials for the store, see `DeltaTable`.
            columns: the columns to read, instead of the columns of the task.

        Raises:
            InvalidArgumentError: there is no such column.
            MissingFileError: a data file is missing, for example after a vacuum.
            CorruptDataError: a data file cannot be read.
        """
        options = store_argument(self.table_uri, storage_options, credential_provider)
        return _internal.read_fragment(self._fragment, options, columns_argument(columns))


def tasks_of(
    snapshot: _internal.Snapshot,
    count: int,
    columns: list[str] | None,
    predicate: str | None,
    *,
    ordered: bool = False,
) -> list[ScanTask]:
    """Returns the rows of a version as at most `count` tasks; see `DeltaTable.scan_tasks`."""
    parts = snapshot.scan_tasks(count, columns, predicate, ordered)
    return [ScanTask(snapshot.uri, files, size, rows, fragment) for fragment, files, size, rows in parts]
