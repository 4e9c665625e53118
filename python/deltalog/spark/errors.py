"""Errors of the Spark layer."""

from deltalog._internal import (
    CommitConflictError,
    DeltaError,
    InvalidArgumentError,
    NotATableError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltalog.errors import AfterCommitError

__all__ = [
    "AfterCommitError",
    "CommitConflictError",
    "DeltaError",
    "InvalidArgumentError",
    "NotATableError",
    "SchemaMismatchError",
    "UnsupportedFeatureError",
    "VersionNotFoundError",
]
