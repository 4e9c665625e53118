"""Errors of py4j. The client of Spark Connect works without py4j, and without a JVM that could raise them."""

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Placeholder that is never raised."""

    class Py4JJavaError(Py4JError):  # type: ignore[misc, no-redef]
        """Placeholder that is never raised."""


__all__ = ["Py4JError", "Py4JJavaError"]
