"""Errors: one class per kind, all subclasses of `DeltaError`, with the standard class as second parent.

The message of an error states what happened. Its attributes are the place, as far as it is known (`table`, `version`,
`path` and `line`), a `hint` with advice, and a `reason` for programs.
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
    """The base of every error of this package."""

    table: str | None = None
    """The table's location."""
    version: int | None = None
    """The affected table version."""
    path: str | None = None
    """The file at fault, relative to the table."""
    line: int | None = None
    """The line at fault, counted from 1."""
    hint: str | None = None
    """A hint: what to do about the error."""
    reason: str | None = None
    """The reason for programs, where a class has several; see `CommitConflictError` and `CommitStateUnknownError`."""


def hinted(error: _Error, hint: str) -> _Error:
    """Adds a hint to an error that Python code raises, at the end of its message, as in errors of the core."""
    error.args = (f"{error}; {hint}",)
    error.hint = hint
    return error


def wrong_argument(name: str, value: object, expected: str) -> "InvalidArgumentError":
    """Returns the error for a value that the parameter `name` does not accept; `expected` describes accepted values."""
    return hinted(InvalidArgumentError(f"{name} cannot be {shown(value)}"), f"pass {expected}")


def shown(value: object) -> str:
    """Returns a value as users write it, on one line and shortened if it is long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 (code of users, and another error is on its way)
        text = f"an object of the type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… (of the type {type(value).__name__})"


_SHOWN = 80


class NotATableError(DeltaError, FileNotFoundError):
    """There is definitely no Delta table at the location; never raised because of a failed request.

    What to do: check the path, or create the table.
    """


class TableReplacedError(DeltaError, FileNotFoundError):
    """The table that was opened no longer exists: it was dropped and another one was created in its place.

    What to do: open the table again, and compute from its new rows what was to be written.
    """


class TableAlreadyExistsError(DeltaError, FileExistsError):
    """There is already a table at the location where one should be created.

    `reason` is `table_created` if another writer created it during the call.

    What to do: append to the table, replace it (`mode="overwrite"`), or choose another location.
    """


class VersionNotFoundError(DeltaError, LookupError):
    """The requested version or time is not in the readable range.

    What to do: choose one of the versions that the message names. To keep more of them, set
    `delta.logRetentionDuration` and `delta.deletedFileRetentionDuration`.
    """


class DeltaProtocolError(DeltaError):
    """The parent of `CorruptLogError` and `UnsupportedFeatureError`, under the name that `deltalake` uses."""


class CorruptLogError(DeltaProtocolError, ValueError):
    """The log breaks the protocol.

    What to do: look at the file and the line that the message names. If another program has written it, report it
    there; a copy of the log's directory is worth keeping.
    """


class CorruptDataError(DeltaError, ValueError):
    """A data file breaks its format, or does not fit the table's schema.

    What to do: find all such files by `DeltaTable.check`, and write their rows again, or remove the files by
    `DeltaTable.repair(remove_damaged=True)`.
    """


class MissingFileError(DeltaError, FileNotFoundError):
    """A file that the log names does not exist.

    What to do: bring the file back from a copy, or remove it from the log by `DeltaTable.repair`. If a VACUUM has
    deleted it, readers need a longer `delta.deletedFileRetentionDuration`.
    """


class UnsupportedFeatureError(DeltaProtocolError, NotImplementedError):
    """The table or the call needs something that deltalog does not support yet; the message names it.

    What to do: use a client that supports what the message names, or drop the table feature with such a client.
    """


class InvalidArgumentError(DeltaError, ValueError):
    """An argument is invalid.

    What to do: follow the hint, which says what is accepted.
    """


class SchemaMismatchError(DeltaError, ValueError):
    """The data does not fit the schema of the table.

    What to do: cast the data, leave out the column, or let the table take it (`schema_mode="merge"`).
    """


class CommitConflictError(DeltaError):
    """Another writer's commit makes this one impossible. Nothing was committed.

    `version` is the version that won. `reason` says what it did: `concurrent_append` (it added rows that
    this write should have read), `concurrent_delete_read` (it removed a file that this write had read),
    `concurrent_delete_delete` (it removed a file or deleted a row that this write removes as well), `metadata_changed`,
    `protocol_changed`, `domain_changed` (it changed the same metadata domain, or one that this write depends
    on), `app_transaction` (it, or a version before it, recorded the progress of the same application),
    `log_cleaned_up` (the version was cleaned up, so what it did is not known), or `table_replaced` (the
    table was dropped, or dropped and created again). `path` is the file concerned, if there is one.

    The subclasses have the names of `delta.exceptions`.

    What to do: read the newest version, and repeat the call: what it has computed may be outdated.
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
    """The store's answer was lost and the commit could not be read back: it may or may not be in the log.

    `DeltaTable.find_commit(error.transaction_id)` finds out which, when the store answers again. Until then the data
    files of the write are kept. `reason` says why: `no_answer` (the store did not answer), `access_denied` (it
    refused to), `contradiction` (its answers contradict each other) or `unreadable` (its answer is not a commit).

    What to do: do not repeat the write before `find_commit` has answered.
    """

    transaction_id: str | None = None
    """The id that the commit carries as `commitInfo.txnId`."""


class CommittedInterrupt(KeyboardInterrupt):
    """Ctrl-C came when the call had already committed. Do not repeat the call.

    A call that is interrupted before its commit raises a plain `KeyboardInterrupt`, and has committed nothing. The
    exception of another signal's handler is raised unchanged; if the call has committed, the exception has a note that
    says so.
    """

    table: str | None = None
    """The table's location."""
    version: int | None = None
    """The version that was committed, if there are several, the last one."""
    versions: tuple[int, ...] = ()
    """All versions that were committed, such as the batches of an OPTIMIZE."""


class UnknownCommitInterrupt(KeyboardInterrupt):
    """Ctrl-C arrived during the request that commits, and the store did not answer in time.

    `DeltaTable.find_commit(error.transaction_id)` finds out. The cause is the `CommitStateUnknownError`.
    """

    table: str | None = None
    """The table's location."""
    version: int | None = None
    """The version that may have been committed."""
    transaction_id: str | None = None
    """The id that the commit carries as `commitInfo.txnId`."""


class AfterCommitError(DeltaError):
    """The write or the change was committed as `version`, but a later step failed. Do not repeat the write.

    Spark's writes raise this error, with a `hint` that says how to repeat the failed step.

    What to do: follow the hint, and do not repeat the write.
    """


class UnavailableError(DeltaError, OSError):
    """The store refused or failed a request, or Spark lost an executor; the same call may succeed later.

    What to do: repeat the call later. The options `retry_timeout` and `read_timeout` of the store say how long it may
    be silent.
    """


class AccessDeniedError(DeltaError, PermissionError):
    """The store refused the caller's credentials or permissions.

    What to do: check the credentials and the permissions. Writers also need to list the table and to delete files.
    """


class InternalError(DeltaError, RuntimeError):
    """Code of deltalog has panicked, which is a defect.

    A write that raises it may have been committed; `DeltaTable.history` shows whether it was.

    What to do: please report it.
    """
