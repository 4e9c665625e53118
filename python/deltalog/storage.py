"""Functions and classes for the stores that contain tables."""

import os
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from deltalog import _internal
from deltalog.arguments import location_argument, store_argument
from deltalog.checked import checked
from deltalog.credentials import CredentialProvider
from deltalog.errors import InvalidArgumentError, hinted, shown, wrong_argument

__all__ = [
    "CacheStatistics",
    "CredentialProvider",
    "LogEntry",
    "LogStore",
    "cache_statistics",
    "check",
    "register_log_store",
]


class CacheStatistics(NamedTuple):
    """Statistics of the caches on the local disk: requests for files or ranges of files, and hits."""

    hits: int
    """The number of hits. It includes data files that the store has reported as unchanged."""
    misses: int
    """The number of requests that were sent to the store."""
    hit_bytes: int
    """The number of bytes that were read from caches."""
    miss_bytes: int
    """The number of bytes that were read from stores."""


def cache_statistics() -> CacheStatistics:
    """Returns statistics of this process's caches, which the storage option `cache_dir` turns on.

    A forked child starts at zero.
    """
    return CacheStatistics(*_internal.cache_statistics())


class LogEntry(NamedTuple):
    """The entry of one commit in a `LogStore`."""

    table_path: str
    """The location of the table, such as `s3a://bucket/path`: decoded, and for S3 always with this scheme."""
    file_name: str
    """The name of the commit in `_delta_log`, such as `00000000000000000007.json`."""
    temp_path: str
    """The path of a file with the bytes of the commit, relative to `_delta_log`. No other attempt has the same path."""
    is_complete: bool
    """Whether the commit is known to be in the log."""


class LogStore(Protocol):
    """A service that decides which of several concurrent writers commits a version of a table. See
    `register_log_store`.

    A log store keeps one entry for each table and file name, and never replaces it with another writer's entry. Several
    threads may call it at the same time. When a call has returned, every later call, in any process, must see its
    effect. A method that raises an exception may have taken effect; deltalog then calls `get` to find out. A
    `PermissionError` becomes an `AccessDeniedError`, any other exception an `UnavailableError`, or a
    `CommitStateUnknownError` if the outcome of the commit cannot be determined.
    """

    def put_if_absent(self, entry: LogEntry, /) -> bool:
        """Stores an entry unless there already is one for the same table and file name. Returns whether it was
        stored.
        """
        ...

    def get(self, table_path: str, file_name: str, /) -> LogEntry | None:
        """Returns the entry for a table and a file name, or None."""
        ...

    def newest(self, table_path: str, /) -> LogEntry | None:
        """Returns the entry of a table whose file name is the greatest, or None."""
        ...

    def complete(self, entry: LogEntry, /) -> None:
        """Marks the entry with the same table, file name and `temp_path` as complete, if there is one.

        The entry may be deleted a day later, or at any time after that.
        """
        ...


@checked
def register_log_store(name: str, log_store: LogStore) -> dict[str, str]:
    """Registers an object that decides which writer commits a version, and returns the storage option that names it.

        options = register_log_store("ours", OurLogStore())
        write_deltalake(uri, data, storage_options=options)

    All writers of a table must use the same service. This works for tables in any store, including local directories.
    The object is kept until the process ends. Another process must register its own object, under the same name if the
    options are passed to it.

    Args:
        name: the value of the option `log_store`. `dynamodb` is reserved.
        log_store: an object with the methods of `LogStore`.

    Returns:
        `{"log_store": name}`.
    """
    if name.lower() == "dynamodb" or not name:
        raise wrong_argument("name", name, "another name")
    lacks = [
        m for m in ("put_if_absent", "get", "newest", "complete") if not callable(getattr(log_store, m, None))
    ]
    if lacks:
        refused = InvalidArgumentError(f"log_store has no method {', '.join(lacks)}: {shown(log_store)}")
        raise hinted(refused, "pass an object with the methods of LogStore")
    if not _internal.register_log_store(name, log_store):
        raise hinted(InvalidArgumentError(f"another log store has the name {name!r}"), "pass another name")
    return {"log_store": name}


@checked
def check(
    table_uri: "str | os.PathLike[str]",
    storage_options: Mapping[str, str] | None = None,
    *,
    credential_provider: CredentialProvider | None = None,
) -> None:
    """Checks that a store is safe for tables: it must create a file, refuse to create the same file again, and delete
    it.

    Every commit relies on this. A store that replaces an object instead of refusing to create it again would silently
    lose commits. The stores of Amazon, Google and Microsoft are known to work correctly. With any other store, the
    first commit of a process makes the same check. The file is in the table's root, under a new name that begins with
    `.deltalog-check-`.

    Args:
        table_uri: the location of an existing or future table.
        storage_options: storage options, see `DeltaTable`.
        credential_provider: provides credentials for the store, see `DeltaTable`.

    Raises:
        UnsupportedFeatureError: the store replaces files. Tables in it would lose commits.
        AccessDeniedError: reading, writing or deleting is not permitted.
        UnavailableError: the store failed or gave no answer.
    """
    location = location_argument(table_uri)
    _internal.check_store(location, store_argument(location, storage_options, credential_provider))
