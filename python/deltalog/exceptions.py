"""deltalog's errors under the names in `deltalake.exceptions` and `delta.exceptions`. `deltalog.errors` has all errors.

| `deltalake` | deltalog |
| --- | --- |
| `DeltaError` | `DeltaError` |
| `TableNotFoundError` | `NotATableError` |
| `CommitFailedError` | `CommitConflictError` if nothing was committed; `CommitStateUnknownError` if that is unknown |
| `DeltaProtocolError` | the parent of `UnsupportedFeatureError` and `CorruptLogError` |
| `SchemaMismatchError` | `SchemaMismatchError` |

A row that breaks a rule of the table raises an `InvalidArgumentError`; in `deltalake` it raises a `DeltaProtocolError`.

| `delta` | deltalog |
| --- | --- |
| `DeltaConcurrentModificationException` | `CommitConflictError`, the parent of the others, unlike in `delta` |
| `ConcurrentAppendException`, … | subclasses of `CommitConflictError`, by its `reason` |
"""

from deltalog.errors import (
    CommitConflictError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaError,
    DeltaProtocolError,
    MetadataChangedException,
    NotATableError,
    ProtocolChangedException,
    SchemaMismatchError,
)

__all__ = [
    "CommitFailedError",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "DeltaError",
    "DeltaProtocolError",
    "MetadataChangedException",
    "ProtocolChangedException",
    "SchemaMismatchError",
    "TableNotFoundError",
]

CommitFailedError = CommitConflictError
DeltaConcurrentModificationException = CommitConflictError
TableNotFoundError = NotATableError
