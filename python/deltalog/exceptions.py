"""The errors that `deltalake.exceptions` and `delta.exceptions` have, by these names. `deltalog.errors` has all.

| `deltalake` | deltalog |
| --- | --- |
| `DeltaError` | `DeltaError` |
| `TableNotFoundError` | `NotATableError` |
| `CommitFailedError` | `CommitConflictError`: nothing was committed. What is not known is a `CommitStateUnknownError` |
| `DeltaProtocolError` | the parent of `UnsupportedFeatureError` and `CorruptLogError` |
| `SchemaMismatchError` | `SchemaMismatchError` |

A row that breaks a rule of the table is an `InvalidArgumentError`, and a `DeltaProtocolError` of `deltalake`.

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
