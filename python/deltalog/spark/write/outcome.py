"""Errors of steps after a commit, which state that the write was committed."""

from collections.abc import Iterator
from contextlib import contextmanager

from deltalog.errors import AfterCommitError


@contextmanager
def after_commit(uri: str, version: int | None, step: str, hint: str) -> Iterator[None]:
    """Converts an exception in the body to an error that names the committed version.

    If `version` is None, nothing was committed, and the exception is unchanged.
    """
    try:
        yield
    except BaseException as error:
        if version is None:
            raise
        text = f"version {version} of the table {uri} was committed, but {step} failed"
        if not isinstance(error, Exception):
            raise type(error)(f"{text}: it was interrupted") from error
        failure = AfterCommitError(f"{text}: {str(error) or type(error).__name__}; {hint}")
        failure.table, failure.version, failure.hint = uri, version, hint
        raise failure from error
