"""Conversion between paths in Spark and locations in the core."""

import re
from typing import Any
from urllib.parse import unquote

from pyspark.errors import IllegalArgumentException

from deltalog._internal import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm

_LOCAL = "file:"
_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*:/")


def uri_of(jvm: Jvm, session: Any, path: str) -> str:
    """Returns the URL of a Hadoop path.

    The path is not escaped (`/my table`, `file:/my table`). A relative path is resolved against the file system's
    working directory.

    Raises `InvalidArgumentError` if the text is not a path, and `UnsupportedFeatureError` if it is in another store.
    """
    from py4j.protocol import Py4JJavaError  # Spark's Connect client does not have it.

    ensure_local(path)
    try:
        qualified: str = jvm.static("Locations", "url", session, path)
    except IllegalArgumentException as error:
        raise InvalidArgumentError(f"{path!r} is not the path of a table: {error}") from error
    except Py4JJavaError as error:
        raise UnsupportedFeatureError(
            f"Hadoop has no file system for the path {path!r}, which has no scheme: fs.defaultFS names another store, "
            "which is not supported yet; write file:///path"
        ) from error
    scheme, separator, rest = qualified.partition(":/")
    if separator and not rest.startswith("/"):
        return f"{scheme}:///{rest}"
    return qualified


def ensure_local(path: str) -> None:
    """Raises `UnsupportedFeatureError` for a URL that is not in the local file system, without showing its secrets."""
    if _URL.match(path) and not path.lower().startswith(_LOCAL):
        scheme = path.partition(":")[0]
        raise UnsupportedFeatureError(
            f"the store '{scheme}' is not supported in Spark yet; use a local path or a file:// URL, or read the table "
            "without Spark: deltalog.DeltaTable opens s3://, gs:// and abfss://"
        )


def unescaped(location: str) -> str:
    """Returns a path or URL in a form that can be compared: without escapes and without an empty authority.

    Hadoop, Java and Rust spell both in different ways.
    """
    scheme, separator, rest = location.partition(":/")
    if not separator:
        return unquote(location)
    return f"{scheme}:/{unquote(rest.lstrip('/') if rest.startswith('//') else rest)}"


def path_of(jvm: Jvm, uri: str) -> str:
    """Returns the Hadoop path, which is not escaped, of a URL."""
    return str(jvm.static("Locations", "path", uri))
