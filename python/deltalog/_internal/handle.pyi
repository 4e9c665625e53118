"""The newest snapshot of a table, and its commits."""

from collections.abc import Mapping
from datetime import timedelta
from typing import final

from deltalog._internal.snapshot import Snapshot
from deltalog._internal.stream import ArrowStream
from deltalog.arguments import StoreOptions

@final
class Recent:
    """The newest snapshot of a table, refreshed in the background."""

    def __new__(cls, snapshot: Snapshot) -> Recent: ...
    def snapshot(self, max_age: timedelta) -> Snapshot:
        """Returns a snapshot that was the newest at most `max_age` ago."""

@final
class Commits:
    """The commits of a table, one by one."""

    def __iter__(self) -> Commits: ...
    def __next__(self) -> Commit: ...

@final
class Commit:
    """A commit of a table."""

    @property
    def version(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def info_json(self) -> str | None:
        """The `commitInfo` of the commit, as JSON."""
    def actions(self) -> ArrowStream:
        """Returns the actions of the commit, one row per action."""

def check_store(uri: str, storage_options: StoreOptions | Mapping[str, str] | None = None) -> None:
    """Checks that the store of `uri` refuses to create a file that already exists; see `deltalog.storage.check`."""

def cache_statistics() -> tuple[int, int, int, int]:
    """Returns the number of hits, the number of misses, the bytes of all hits, and the bytes of all misses; see
    `deltalog.storage.cache_statistics`.
    """

def canonical_uri(uri: str, storage_options: StoreOptions | Mapping[str, str] | None = None) -> str:
    """Returns the canonical URL of a location: the same URL for all spellings of the location. Sends no request to the
    store.
    """

def table_exists(uri: str, storage_options: StoreOptions | Mapping[str, str] | None = None) -> bool:
    """Returns whether there is a table at the location, even if deltalog cannot read it."""
