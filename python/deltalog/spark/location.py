"""Converts between paths in Spark and locations in the core.

The core reads and commits the log with its own clients. Spark's tasks read and write the data files through Hadoop's
file systems. Both use the same location of a table: its URL in the core's canonical spelling, from which
`Locations.java` derives the path for Hadoop.
"""

import itertools
import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.errors import IllegalArgumentException

from deltalog._internal import InvalidArgumentError, UnsupportedFeatureError, canonical_uri
from deltalog.spark import hadoop_settings
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.py4j_errors import Py4JJavaError
from deltalog.spark.options import Options

_LOCAL = "file:"
_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*:/")
# The canonical name of each URL scheme. The core uses the same names (`protocol::path`).
_STORES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfss": "abfss",
    "abfs": "abfss",
    "wasb": "abfss",
    "wasbs": "abfss",
    "az": "abfss",
    "azure": "abfss",
    "hdfs": "hdfs",
}
# The prefixes of options that affect which store is reached, and not only how requests are sent to it.
_REACH = ("aws_", "azure_", "google_", "hdfs_", "dfs.", "hadoop.")
_CONNECTORS = {"s3": "hadoop-aws", "abfss": "hadoop-azure", "gs": "gcs-connector"}


class Location:
    """The location of a table, and the options for accessing its store."""

    def __init__(
        self,
        uri: str,
        storage_options: Mapping[str, str] | None = None,
        obstacle: str | None = None,
        number: int = 0,
    ) -> None:
        self.uri = uri
        """The URL, in the canonical spelling for a store."""
        self.storage_options = storage_options
        self.obstacle = obstacle
        """The reason why Spark's tasks cannot reach the files; None if they can."""
        self.number = number
        """The number with which keys and descriptions refer to the location; 0 for a local file system."""

    def __repr__(self) -> str:
        return f"Location({self.uri!r})"  # The options may contain secrets, so they are not shown.

    def ensure_in_reach(self) -> None:
        """Raises `UnsupportedFeatureError` if Spark's tasks cannot read and write the table's files."""
        if self.obstacle is not None:
            raise UnsupportedFeatureError(f"{self.obstacle} (table {self.uri})")


_KEPT = 1024

_lock = threading.Lock()
# The first number is random, so that a key from an earlier process never refers to the store of another table.
_numbers = itertools.count(secrets.randbits(48) + 1)
# The locations by number, and the last location that this thread used. References to a version of a table are strings
# that Spark keeps and shows. They must not contain credentials, so they contain the number of the location instead.
_reached: "OrderedDict[int, Location]" = OrderedDict()
_of_thread = threading.local()


def location_of(jvm: Jvm, session: Any, options: Options) -> Location:
    """Returns the location that the options name, with its storage options.

    Hadoop's settings come from the session and from the options. Storage options take precedence over them.

    Raises `InvalidArgumentError` if the path is invalid, and `UnsupportedFeatureError` if it is in an unsupported
    store.
    """
    found = _Found.of(jvm, session, options.path)
    if found.is_local:
        return Location(found.url)
    scheme, authority = _store_of(found.url, options.storage)
    settings = {**found.settings, hadoop_settings.HDFS_USER: found.user or ""}
    of_session = hadoop_settings.storage_options(scheme, authority, settings)
    asked = hadoop_settings.storage_options(scheme, authority, {**settings, **options.hadoop})
    asked.update(options.storage)
    uri = canonical_uri(found.url, asked)
    return _remembered(uri, asked, found.obstacle(scheme, of_session, asked))


def _remembered(uri: str, storage_options: Mapping[str, str], obstacle: str | None) -> Location:
    """Returns the location, and keeps it under its number. If its options are unchanged, the number is the same."""
    with _lock:
        same = (
            known
            for known in reversed(_reached.values())
            if (known.uri, known.storage_options, known.obstacle) == (uri, storage_options, obstacle)
        )
        location = next(same, None) or Location(uri, storage_options, obstacle, next(_numbers))
        _reached[location.number] = location
        _reached.move_to_end(location.number)
        while len(_reached) > _KEPT:
            _reached.popitem(last=False)
    _of_thread.last = location
    return location


def location_with(number: int, uri: str) -> Location:
    """Returns the location with this number, which belongs to the table at the canonical URL `uri`.

    If it is no longer kept, returns the newest location with this URL, or else one without storage options.
    """
    with _lock:
        newest = (known for known in reversed(_reached.values()) if known.uri == uri)
        location = _reached.get(number) or next(newest, None) or Location(uri)
    _of_thread.last = location
    return location


def last_location(uri: str) -> Location:
    """Returns the location that this thread used last if it has this canonical URL.

    Otherwise, returns the newest location with this URL, or else one without storage options.
    """
    last: Location | None = getattr(_of_thread, "last", None)
    return last if last is not None and last.uri == uri else location_with(0, uri)


def uri_of(jvm: Jvm, session: Any, path: str) -> str:
    """Returns the URL of a Hadoop path.

    The path is not escaped (`/my table`, `file:/my table`). A relative path is resolved against the file system's
    working directory.
    """
    return _Found.of(jvm, session, path).url


class _Found(NamedTuple):
    """Information from the JVM about a path."""

    url: str
    scheme: str | None
    """The scheme with which Hadoop accesses the store; None if Hadoop has no file system class for it."""
    settings: dict[str, str]
    hadoop_version: str
    user: str | None
    """In HDFS, the user name that the session sends to the name node."""

    @classmethod
    def of(cls, jvm: Jvm, session: Any, path: str) -> "_Found":
        ensure_known(path)
        try:
            found = cls(**json.loads(jvm.static("Locations", "describe", session, path)))
        except IllegalArgumentException as error:
            shown = "the location" if _URL.match(path) else repr(path)
            raise InvalidArgumentError(f"{shown} is not the path of a table: {error}") from error
        except Py4JJavaError as error:
            raise UnsupportedFeatureError(
                f"Hadoop has no file system for the path {path!r}, which has no scheme: fs.defaultFS names another "
                "store; write file:///path, or the whole URL"
            ) from error
        if found.is_local:
            scheme, separator, rest = found.url.partition(":/")
            if separator and not rest.startswith("/"):
                return found._replace(url=f"{scheme}:///{rest}")
        else:
            ensure_known(found.url)
        return found

    @property
    def is_local(self) -> bool:
        return self.url.startswith(_LOCAL)

    def obstacle(self, scheme: str, of_session: Mapping[str, str], asked: Mapping[str, str]) -> str | None:
        """Returns the reason why Spark's tasks cannot reach the files; None if they can."""
        if self.scheme is None and scheme not in _CONNECTORS:
            return (
                f"Hadoop has no file system for '{scheme}', through which Spark reads and writes data files"
            )
        if self.scheme is None:
            connector = _CONNECTORS[scheme]
            version = self.hadoop_version if connector != "gcs-connector" else "the version for Hadoop 3"
            organisation = (
                "com.google.cloud.bigdataoss" if connector == "gcs-connector" else "org.apache.hadoop"
            )
            return (
                f"Hadoop has no file system for the store '{scheme}', through which Spark reads and writes data files: "
                f"start the session with spark.jars.packages={organisation}:{connector}:{version}"
            )
        differing = sorted(
            name
            for name in {*of_session, *asked}
            if name.startswith(_REACH) and of_session.get(name) != asked.get(name)
        )
        if differing:
            example = ", for one bucket as in fs.s3a.bucket.<bucket>.access.key" if scheme == "s3" else ""
            return (
                f"the options ({', '.join(differing)}) change how the store is accessed, but Spark's tasks access it "
                f"by the session's settings: set Hadoop's settings{example}"
            )
        return None


def ensure_known(path: str) -> None:
    """Raises `UnsupportedFeatureError` for a URL in an unknown store, without showing its secrets."""
    if not _URL.match(path):
        return
    scheme = path.partition(":")[0].lower()
    if scheme != "file" and scheme not in _STORES:
        raise UnsupportedFeatureError(
            f"the store '{scheme}' is not supported; use a local path, or s3a://, gs://, abfss:// or hdfs://"
        )


def _store_of(url: str, options: Mapping[str, str]) -> tuple[str, str]:
    """Returns the canonical scheme and authority of a URL."""
    spelled, _, rest = url.partition("://")
    scheme, authority = _STORES[spelled.lower()], rest.partition("/")[0]
    if scheme == "abfss":
        if "@" not in authority:  # az://container/path
            account = options.get("azure_storage_account_name", "")
            return scheme, f"{authority}@{account}.dfs.core.windows.net"
        authority = authority.replace(".blob.", ".dfs.", 1)
    return scheme, authority


def unescaped(location: str) -> str:
    """Returns a path or URL in a form that can be compared: without escapes, without an empty authority, and with one
    name for each store.

    Hadoop, Java and Rust spell the same path or URL in different ways.
    """
    scheme, separator, rest = location.partition(":/")
    if not separator:
        return unquote(location)
    store = _STORES.get(scheme.lower())
    if store is not None:
        return f"{store}:/{unquote(rest)}"
    return f"{scheme}:/{unquote(rest.lstrip('/') if rest.startswith('//') else rest)}"


def path_of(jvm: Jvm, session: Any, uri: str) -> str:
    """Converts a URL to a Hadoop path, which is not escaped."""
    return str(jvm.static("Locations", "path", session, uri))
