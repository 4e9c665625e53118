"""Writes whose files come from several processes."""

from collections.abc import Iterable, Mapping
from typing import Literal, final

from deltalog._internal.commit_arguments import AlreadyApplied
from deltalog._internal.snapshot import Snapshot
from deltalog.arguments import StoreOptions
from deltalog.arrow_types import ArrowData
from deltalog.commit import WriteArguments
from deltalog.credentials import CredentialProvider

@final
class WriteTask:
    """The data that a worker needs to write files of a distributed write: the table's location, schema and rules.

    A task can be pickled, and contains no credentials.
    """

    def __new__(cls, json: str) -> WriteTask:
        """Reads the text that `to_json` has returned.

        Raises:
            InvalidArgumentError: the text is anything else, or comes from another version of deltalog.
        """
    @property
    def table_uri(self) -> str:
        """The location of the table, as a URL."""
    @property
    def write_id(self) -> str:
        """The id of the write, which is the directory of its files in the table."""
    def numbered(self, number: int, of: int) -> WriteTask:
        """Returns a copy of the task that is number `number` of `of` tasks, counted from 0. The number determines which
        values the task assigns to identity columns.

        This is for engines that number their workers; see `DistributedWrite.tasks` for the rules. `of` must be the same
        for all tasks of a write. A number that no task uses leaves gaps in the values.

        Raises:
            InvalidArgumentError: `number` is not less than `of`.
        """
    def write(
        self,
        data: ArrowData,
        storage_options: Mapping[str, str] | None = None,
        credential_provider: CredentialProvider | None = None,
    ) -> Fragment:
        """Writes `data` to new files of the table, and returns the fragment that describes them.

        The table's log is not read, and nothing is committed. Columns are matched by name, values are converted or
        refused, and constraints are enforced as by `write_deltalake`. If anything fails, the files are deleted.

        Args:
            data: anything with `__arrow_c_stream__`. It is read batch by batch, in bounded memory.
            storage_options: the options for the store. A task contains none.
            credential_provider: provides the credentials for the store. A task contains none.

        Raises:
            SchemaMismatchError: the data do not fit the table.
            InvalidArgumentError: a row violates a constraint, the data stream failed, or the data lack an identity
                column and the task has no number from which to generate its values.
            UnavailableError: the store failed.
        """
    def to_json(self) -> str:
        """Returns the task as text, from which `WriteTask(text)` creates it again."""
    def __getnewargs__(self) -> tuple[str]: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class Fragment:
    """The files that one worker has written for a distributed write, as plain data. It can be pickled."""

    def __new__(cls, json: str) -> Fragment:
        """Reads the text that `to_json` has returned.

        Raises:
            InvalidArgumentError: the text is anything else, or comes from another version of deltalog.
        """
    @property
    def write_id(self) -> str:
        """The id of the write that the files belong to."""
    @property
    def paths(self) -> list[str]:
        """The paths of the files relative to the table, as in the log."""
    @property
    def num_rows(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    def to_json(self) -> str:
        """Returns the fragment as text, from which `Fragment(text)` creates it again."""
    def __getnewargs__(self) -> tuple[str]: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class DistributedWrite:
    """A write whose files come from several processes; see `deltalog.begin_write`.

    The object cannot be sent to another process. If it is used as a context manager, the end of the block aborts the
    write unless it was committed.
    """

    @property
    def task(self) -> WriteTask:
        """The data that each worker needs."""
    def tasks(self, count: int) -> list[WriteTask]:
        """Returns `count` tasks, for workers that write rows without the identity columns of the table.

        Each task generates its own values (protocol: "Identity Columns"). A worker that runs twice generates the same
        values, so at most one fragment of each task can be committed. The values have gaps if the tasks write different
        numbers of rows.

        Raises:
            InvalidArgumentError: the number of tasks is 0.
        """
    def commit(self, fragments: Iterable[Fragment]) -> int | AlreadyApplied | None:
        """Commits the files of all fragments as one version, and deletes the write's other files.

        The fragments are checked first. Each must come from a task of this write, its paths, partition values and
        statistics must be valid for the table, and its files must exist and have the stated sizes. No file may occur
        twice, and no two fragments may have assigned the same values of identity columns. If a check fails, nothing is
        changed, and you can commit other fragments.

        Returns:
            The version that was committed; an `AlreadyApplied` if the table has already recorded this version of the
            application, or a later one; None if another writer created the table first, and the mode is `ignore`. In
            the last two cases, the files are deleted.

        Raises:
            InvalidArgumentError: a fragment belongs to another write, or was changed after the worker created it.
            MissingFileError: a file of a fragment does not exist.
            CorruptDataError: a file does not have the size that its fragment states.
            CommitConflictError: another writer has committed a change that conflicts with this write. The files are
                deleted.
            CommitStateUnknownError: it is not known whether the commit succeeded; `DeltaTable.find_commit` finds out.
                The files are kept, and `abort` refuses to delete them.
        """
    def abort(self) -> None:
        """Deletes all files of the write, including the files of workers that died.

        Raises:
            InvalidArgumentError: the write was already committed or aborted, or it is not known whether it was
                committed.
        """
    def __enter__(self) -> DistributedWrite: ...
    def __exit__(self, exception_type: object, exception: object, traceback: object) -> Literal[False]: ...

def begin_write(
    uri: str,
    schema_json: str | None,
    arguments: WriteArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    base: Snapshot | None = None,
) -> DistributedWrite | AlreadyApplied | None:
    """Checks a write before any file is written; see `deltalog.begin_write`."""
