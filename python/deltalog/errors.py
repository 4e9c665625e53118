"""The error classes. All are subclasses of `DeltaError`. If Python has a standard exception for a case, the class is
also a subclass of that exception.

The message of an error states what happened. Its attributes are the table, version, file and line, as far as they are
known (`table`, `version`, `path` and `line`), a `hint` with advice, and a `reason` for programs.
"""

from typing import TypeVar

__all__ = [
    "AccessDeniedError",
    "AfterCommitError",
    "CommitConflictError",
    "CommitStateUnknownError",
    "CommittedInterrupt",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "CorruptDataError",
    "CorruptLogError",
    "DeltaError",
    "DeltaProtocolError",
    "InternalError",
    "InvalidArgumentError",
    "MetadataChangedException",
    "MissingFileError",
    "NotATableError",
    "ProtocolChangedException",
    "SchemaMismatchError",
    "TableAlreadyExistsError",
    "TableReplacedError",
    "UnavailableError",
    "UnknownCommitInterrupt",
    "UnsupportedFeatureError",
    "VersionNotFoundError",
]


_Error = TypeVar("_Error", bound="DeltaError")


class DeltaError(Exception):
    """The base class of all errors of this package."""

    table: str | None = None
    """The table's location."""
    version: int | None = None
    """The affected version of the table."""
    path: str | None = None
    """The path of the file that caused the error, relative to the table."""
    line: int | None = None
    """The number of the line in the file `path`, counted from 1."""
    hint: str | None = None
    """Advice on what to do about the error."""
    reason: str | None = None
    """A word that programs can check, for classes with several reasons; see `CommitConflictError` and
    `CommitStateUnknownError`.
    """


def hinted(error: _Error, hint: str) -> _Error:
    """Adds a hint to an error that Python code raises. As in errors of the core, it is also appended to the message."""
    error.args = (f"{error}; {hint}",)
    error.hint = hint
    return error


def wrong_argument(name: str, value: object, expected: str) -> "InvalidArgumentError":
    """Returns an error which states that the parameter `name` does not accept a value; `expected` describes accepted
    values.
    """
    return hinted(InvalidArgumentError(f"{name} cannot be {shown(value)}"), f"pass {expected}")


def shown(value: object) -> str:
    """Returns a value as users would write it in Python, on one line and shortened if it is long. For a frame and other
    objects that are represented by several lines, returns only the type.
    """
    try:
        text = repr(value)
        is_whole = "\n" not in text or type(value).__module__ == "builtins"
    except Exception:  # noqa: BLE001 (code of users, and another error is on its way)
        is_whole = False
    if not is_whole:
        return f"an object of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… (of type {type(value).__name__})"


_SHOWN = 80


class NotATableError(DeltaError, FileNotFoundError):
    """There is no Delta table at the location. This error is never raised because a request has failed.

    What to do: check the path, or create the table.
    """


class TableReplacedError(DeltaError, FileNotFoundError):
    """The table that was opened no longer exists: it was dropped, and another table was created at the same location.

    What to do: open the table again, and compute the rows that you write from its new rows.
    """


class TableAlreadyExistsError(DeltaError, FileExistsError):
    """A table was to be created at a location where there already is one.

    `reason` is `table_created` if another writer created it during the call.

    What to do: append to the table, replace it (`mode="overwrite"`), or choose another location.
    """


class VersionNotFoundError(DeltaError, LookupError):
    """The requested version or time is outside of the readable range.

    What to do: choose one of the versions that the message names. To keep versions for longer, set
    `delta.logRetentionDuration` and `delta.deletedFileRetentionDuration`.
    """


class DeltaProtocolError(DeltaError):
    """The parent of `CorruptLogError` and `UnsupportedFeatureError`, under the name that `deltalake` uses."""


class CorruptLogError(DeltaProtocolError, ValueError):
    """The log does not follow the protocol.

    What to do: look at the file and the line that the message names. If another program has written the file, report
    the error to its developers. Keep a copy of the log's directory.
    """


class CorruptDataError(DeltaError, ValueError):
    """A data file is damaged, or does not fit the table's schema.

    What to do: find all such files with `DeltaTable.check`. Write their rows again, or remove the files from the table
    with `DeltaTable.repair(remove_damaged=True)`.
    """


class MissingFileError(DeltaError, FileNotFoundError):
    """A file that the log names does not exist.

    What to do: restore the file from a copy, or remove it from the log with `DeltaTable.repair`. If a VACUUM has
    deleted the file while it was still needed, set a longer `delta.deletedFileRetentionDuration`.
    """


class UnsupportedFeatureError(DeltaProtocolError, NotImplementedError):
    """The table or the call needs a feature that deltalog does not support yet; the message names it.

    What to do: use a client that supports the feature that the message names, or drop the table feature with such a
    client.
    """


class InvalidArgumentError(DeltaError, ValueError):
    """An argument is invalid.

    What to do: follow the hint, which states which values are accepted.
    """


class SchemaMismatchError(DeltaError, ValueError):
    """The data does not fit the schema of the table.

    What to do: cast the data, leave out the column, or add it to the table (`schema_mode="merge"`).
    """


class CommitConflictError(DeltaError):
    """Another writer has made a commit that conflicts with this call. Nothing was committed.

    `version` is the version that the other writer has committed. `reason` states what that commit did:
    `concurrent_append` (it added rows that this call should have read), `concurrent_delete_read` (it removed a file
    that this call had read), `concurrent_delete_delete` (it removed a file or deleted a row that this call removes as
    well), `metadata_changed`, `protocol_changed`, `domain_changed` (it changed the same metadata domain, or one on
    which this call depends), `app_transaction` (that version, or an earlier one, recorded a version of the same
    application), `log_cleaned_up` (the commit was already cleaned up, so its content is not known), or `table_replaced`
    (the table was dropped, or dropped and created again). `path` is the file in question, if there is one.

    The subclasses have the same names as in `delta.exceptions`.

    What to do: read the newest version, and repeat the call, because its results may be outdated.
    """


class ConcurrentAppendException(CommitConflictError):  # noqa: N818 (as in delta.exceptions)
    """The reason is `concurrent_append`."""


class ConcurrentDeleteReadException(CommitConflictError):  # noqa: N818 (as in delta.exceptions)
    """The reason is `concurrent_delete_read`."""


class ConcurrentDeleteDeleteException(CommitConflictError):  # noqa: N818 (as in delta.exceptions)
    """The reason is `concurrent_delete_delete`."""


class ConcurrentTransactionException(CommitConflictError):  # noqa: N818 (as in delta.exceptions)
    """The reason is `app_transaction` or `domain_changed`."""


class ConcurrentWriteException(CommitConflictError):  # noqa: N818 (as in delta.exceptions)
    """The reason is `log_cleaned_up`."""


class MetadataChangedException(CommitConflictError):  # noqa: N818 (as in delta.exceptions)
    """The reason is `metadata_changed`."""


class ProtocolChangedException(CommitConflictError):  # noqa: N818 (as in delta.exceptions)
    """The reason is `protocol_changed`."""


class CommitStateUnknownError(DeltaError):
    """It is unknown whether the commit is in the log: the store's answer was lost, and the commit could not be read
    back.

    When the store answers again, `DeltaTable.find_commit(error.transaction_id)` finds out. Until then the data files of
    the write are kept. `reason` states why reading failed: `no_answer` (the store did not answer), `access_denied` (it
    refused access), `contradiction` (its answers contradict each other) or `unreadable` (its answer is not a commit).

    What to do: do not repeat the write before `find_commit` has returned a result.
    """

    transaction_id: str | None = None
    """The id that the commit carries as `commitInfo.txnId`."""


class CommittedInterrupt(KeyboardInterrupt):
    """Ctrl-C was pressed after the call had already committed. Do not repeat the call.

    A call that is interrupted before its commit raises a plain `KeyboardInterrupt`, and has committed nothing. If the
    handler of another signal raises an exception, it is raised unchanged; if the call has committed, a note in the
    exception states this.
    """

    table: str | None = None
    """The table's location."""
    version: int | None = None
    """The version that was committed; if there are several, the last one."""
    versions: tuple[int, ...] = ()
    """All versions that were committed. An OPTIMIZE, for example, can commit several."""


class UnknownCommitInterrupt(KeyboardInterrupt):
    """Ctrl-C was pressed during the request that commits, and the store did not answer in time.

    `DeltaTable.find_commit(error.transaction_id)` finds out whether the commit was made. `__cause__` is the
    `CommitStateUnknownError`.
    """

    table: str | None = None
    """The table's location."""
    version: int | None = None
    """The version that may have been committed."""
    transaction_id: str | None = None
    """The id that the commit carries as `commitInfo.txnId`."""


class AfterCommitError(DeltaError):
    """The write or change was committed as `version`, but a later step has failed. Do not repeat the write.

    Writes in Spark raise this error, with a `hint` that explains how to repeat only the failed step.

    What to do: follow the hint, and do not repeat the write.
    """


class UnavailableError(DeltaError, OSError):
    """A request to the store has failed, or Spark has lost an executor. The same call may succeed later.

    What to do: repeat the call later. The storage options `retry_timeout` and `read_timeout` set how long deltalog
    waits for a silent store.
    """


class AccessDeniedError(DeltaError, PermissionError):
    """The store rejected the credentials, or they do not have the necessary permissions.

    What to do: check the credentials and the permissions. Writers also need to list the table and to delete files.
    """


class InternalError(DeltaError, RuntimeError):
    """deltalog's own code has failed unexpectedly, which is a bug.

    A write that raises this error may have been committed; `DeltaTable.history` shows whether it was.

    What to do: please report the bug.
    """
