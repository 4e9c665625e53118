"""References to versions of tables, for code that must not keep their snapshots, which may be large."""

from typing import NamedTuple

from deltalog._internal import Snapshot
from deltalog.spark.location import last_location, location_with


class TableVersion(NamedTuple):
    """A version of a table, with the information that is needed to open it again."""

    uri: str
    version: int
    table_id: str
    allowed_roots: tuple[str, ...]
    location: int = 0
    """The number of the `Location`, which determines how the store is accessed."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "TableVersion":
        location = last_location(snapshot.uri)
        roots = tuple(snapshot.allowed_roots)
        return cls(snapshot.uri, snapshot.version, snapshot.table_id, roots, location.number)

    def open(self) -> Snapshot:
        """Opens the version again; raises `TableReplacedError` if another table has replaced it."""
        return Snapshot.open(
            self.uri,
            version=self.version,
            storage_options=location_with(self.location, self.uri).storage_options,
            allowed_roots=self.allowed_roots,
            table_id=self.table_id,
        )
