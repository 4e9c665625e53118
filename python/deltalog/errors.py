"""What can go wrong: one class a kind, all below `DeltaError`, each with the standard class as second parent where there is one.

Every error says what happened, and carries what is known of the place: `table`, `version`, `path`, `line`,
and a `hint` what to do.
"""

__all__ = [
    "AccessDeniedError",
    "CommitConflictError",
    "CommitStateUnknownError",
    "CorruptDataError",
    "CorruptLogError",
    "DeltaError",
    "InvalidArgumentError",
    "MissingFileError",
    "NotATableError",
    "SchemaMismatchError",
    "TableAlreadyExistsError",
    "UnavailableError",
    "UnsupportedFeatureError",
    "VersionNotFoundError",
]


class DeltaError(Exception):
    """The base of every error of this package."""

    table: str | None = None
    """The table's location."""
    version: int | None = None
    """The table version concerned."""
    path: str | None = None
    """The file at fault, relative to the table."""
    line: int | None = None
    """The line at fault, counted from 1."""
    hint: str | None = None
    """What to do about it."""


class NotATableError(DeltaError, FileNotFoundError):
    """There is definitely no Delta table at the location; never raised because of a failed request."""


class TableAlreadyExistsError(DeltaError, FileExistsError):
    """There is already a table where one was to be made."""


class VersionNotFoundError(DeltaError, LookupError):
    """The version or the time asked for is not in the readable range."""


class CorruptLogError(DeltaError, ValueError):
    """The log breaks the protocol."""


class CorruptDataError(DeltaError, ValueError):
    """A data file breaks its format, or does not fit the table's schema."""


class MissingFileError(DeltaError, FileNotFoundError):
    """A file that the log names is not there."""


class UnsupportedFeatureError(DeltaError, NotImplementedError):
    """The table, or the call, needs something that deltalog does not do yet; the message names it."""


class InvalidArgumentError(DeltaError, ValueError):
    """What was passed cannot be right."""


class SchemaMismatchError(DeltaError, ValueError):
    """The data do not fit the schema of the table."""


class CommitConflictError(DeltaError):
    """Another writer's commit makes this one impossible. Nothing was committed."""


class CommitStateUnknownError(DeltaError):
    """The store's answer was lost and the commit could not be read back: it may or may not stand.

    `DeltaTable.find_commit(error.transaction_id)` tells which, when the store answers again. Until then the data
    files of the write are kept.
    """

    transaction_id: str | None = None
    """The id that the commit carries as `commitInfo.txnId`."""


class UnavailableError(DeltaError, OSError):
    """The store refused or failed a request; the same call may succeed later."""


class AccessDeniedError(DeltaError, PermissionError):
    """The store refused the caller's credentials or permissions."""
