"""References to versions of tables, for code that must not keep their snapshots, which may be large."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from deltalog._internal import Snapshot
from deltalog.spark.location import Location

_KEPT = 1024

_lock = threading.Lock()
# How the stores of tables were reached last, by the URLs of the tables. References to versions are texts that Spark
# keeps and shows, so they cannot have credentials.
_reached: "OrderedDict[str, Mapping[str, str]]" = OrderedDict()


def remember(location: Location) -> None:
    """Records how the store of a table is reached, for versions that are opened again."""
    if location.storage_options is None:
        return
    with _lock:
        _reached[location.uri] = location.storage_options
        _reached.move_to_end(location.uri)
        while len(_reached) > _KEPT:
            _reached.popitem(last=False)


class TableVersion(NamedTuple):
    """A version of a table, and how it is opened."""

    uri: str
    version: int
    table_id: str
    allowed_roots: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "TableVersion":
        return cls(snapshot.uri, snapshot.version, snapshot.table_id, tuple(snapshot.allowed_roots))

    def open(self) -> Snapshot:
        """Opens the version again; raises `TableReplacedError` if another table is in its place."""
        with _lock:
            storage_options = _reached.get(self.uri)
        return Snapshot.open(
            self.uri,
            version=self.version,
            storage_options=storage_options,
            allowed_roots=self.allowed_roots,
            table_id=self.table_id,
        )
