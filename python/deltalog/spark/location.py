"""Conversion between paths in Spark and locations in the core."""

from typing import Any
from urllib.parse import unquote

from deltalog.spark.jvm import Jvm


def uri_of(jvm: Jvm, session: Any, path: str) -> str:
    """Returns the URL of a Hadoop path.

    The path is not escaped (`/my table`, `hdfs://…`). A relative path is resolved against the file system's
    working directory.
    """
    hadoop_path = jvm.root.org.apache.hadoop.fs.Path(path)
    file_system = hadoop_path.getFileSystem(session.sessionState().newHadoopConf())
    qualified: str = file_system.makeQualified(hadoop_path).toUri().toString()
    scheme, separator, rest = qualified.partition(":/")
    if separator and not rest.startswith("/"):
        return f"{scheme}:///{rest}"
    return qualified


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
    return str(jvm.root.org.apache.hadoop.fs.Path(jvm.root.java.net.URI(uri)).toString())
