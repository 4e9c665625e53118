"""The location of a table under Spark Connect, and how its store is accessed.

The server's Python processes read and write with the core's clients. Credentials come from the environment of these
processes, from profiles, or from the machine. All other settings are options of the read or the write.

- Options that may be secrets (`secrecy.py`) are refused, because options are part of the plan that the client sends,
  and a Connect server shows plans: in the descriptions of its jobs and in its event log. Hadoop's settings are also
  refused, because they have no meaning here.
- Data that is pickled for workers contains no secret either.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from deltalog._internal import canonical_uri
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.location import ensure_known
from deltalog.spark.options import Options
from deltalog.spark.secrecy import possible_secrets

# The characters that Java does not escape in the paths of URLs.
_UNESCAPED = "/!$&'()*+,;=:@-._~"


class Place(NamedTuple):
    """A table's URL, and the options for accessing its store, which are None for a local file system."""

    uri: str
    storage_options: Mapping[str, str] | None


def place_of(options: Options) -> Place:
    """Returns the location of a table from the options, in a server process.

    Raises:
        InvalidArgumentError: the path is relative, or an option is wrong.
        UnsupportedFeatureError: the store is unknown, or an option may be a secret.
    """
    check_plain(options)
    uri = connect_uri(options.path)
    # Refuses options that the store does not have. Local files have no options.
    canonical = canonical_uri(uri, options.storage)
    return Place(uri, None) if uri.startswith("file:") else Place(canonical, options.storage)


def check_plain(options: Options) -> None:
    """Raises `UnsupportedFeatureError` for an option that may be a secret, without showing its value."""
    refused = possible_secrets(options) | options.hadoop.keys()
    if refused:
        raise UnsupportedFeatureError(
            f"options that may be secrets ({', '.join(sorted(refused))}) are refused under Spark Connect, because the "
            "server shows options in the descriptions of its jobs and in its event log: set them in the environment of "
            "the server and of its executors, or in a profile there, and replace a secret that was sent"
        )


def connect_uri(path: str) -> str:
    """Returns the URL of a path in a process without Hadoop. A path without a scheme is local.

    The path is not escaped, as in Hadoop (`s3a://bucket/my table`).

    Raises `InvalidArgumentError` for a relative path, because the processes of the server have different working
    directories, and `UnsupportedFeatureError` for an unknown store.
    """
    local = path.removeprefix("file:") if path.startswith("file:") else path
    if "://" in local:
        ensure_known(path)
        scheme, _, rest = path.partition("://")
        authority, separator, within = rest.partition("/")
        return f"{scheme.lower()}://{authority}{separator}{quote(within, safe=_UNESCAPED)}"
    if not local.startswith("/"):
        raise InvalidArgumentError(
            f"the path {path!r} is relative, but must be absolute here, because the processes of Spark (and the "
            "client of a Connect server) have different working directories"
        )
    return "file://" + quote("/" + local.lstrip("/"))
