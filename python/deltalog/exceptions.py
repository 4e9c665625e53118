"""The errors that `deltalake.exceptions` has, by these names. `deltalog.errors` has all, by kinds.

| `deltalake` | deltalog |
| --- | --- |
| `DeltaError` | `DeltaError` |
| `TableNotFoundError` | `NotATableError` |
| `CommitFailedError` | `CommitConflictError`: nothing was committed. What is not known is a `CommitStateUnknownError` |
| `DeltaProtocolError` | the parent of `UnsupportedFeatureError` and `CorruptLogError` |
| `SchemaMismatchError` | `SchemaMismatchError` |

A row that breaks a rule of the table is an `InvalidArgumentError`, and a `DeltaProtocolError` of `deltalake`.
"""

from deltalog.errors import (
    CommitConflictError,
    DeltaError,
    DeltaProtocolError,
    NotATableError,
    SchemaMismatchError,
)

__all__ = [
    "CommitFailedError",
    "DeltaError",
    "DeltaProtocolError",
    "SchemaMismatchError",
    "TableNotFoundError",
]

CommitFailedError = CommitConflictError
TableNotFoundError = NotATableError
