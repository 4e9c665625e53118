"""Errors of py4j. Spark's Connect client does without py4j, and without a JVM that could raise them."""

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Nothing raises it here."""

    class Py4JJavaError(Py4JError):  # type: ignore[misc, no-redef]
        """Nothing raises it here."""


__all__ = ["Py4JError", "Py4JJavaError"]
