"""The error classes of py4j, or placeholders without py4j. The Spark Connect client works without py4j."""

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Placeholder that is never raised."""

    class Py4JJavaError(Py4JError):  # type: ignore[misc, no-redef]
        """Placeholder that is never raised."""


__all__ = ["Py4JError", "Py4JJavaError"]
