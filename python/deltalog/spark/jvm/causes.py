"""The chain of causes of a Java exception."""

from collections.abc import Iterator
from typing import Any

# The maximum number of causes, because a chain may lead back to its beginning.
_DEEPEST = 20


def causes(java_exception: Any) -> Iterator[Any]:
    """Yields the exception, then its cause, and so on."""
    for _ in range(_DEEPEST):
        if java_exception is None:
            return
        yield java_exception
        java_exception = java_exception.getCause()
