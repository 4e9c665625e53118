"""Creates entries in the session catalog for tables that already exist."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from deltalog.spark.jvm import Jvm
from deltalog.spark.location import path_of
from deltalog.spark.write.outcome import after_commit

# The command with which a client of Spark Connect makes the server update the columns of a catalog entry to the
# table's.
UPDATE_ENTRY = "updateEntry"


class NewEntry(NamedTuple):
    """An entry that is to be created. It contains no table properties, because they are in the log. `EntryColumns.java`
    adds the columns.
    """

    identifier: Any
    """The name, as a TableIdentifier."""
    uri: str
    is_managed: bool
    """Whether DROP TABLE deletes the files."""
    provider: str
    options: Mapping[str, str]

    def create(self, jvm: Jvm, session: Any, version: int | None) -> None:
        """Creates the entry, after `version` was committed. If this fails, the error names the version."""
        path = path_of(jvm, session, self.uri)
        with self._registering(path, version):
            self._put(jvm, session, path)

    def _put(self, jvm: Jvm, session: Any, path: str) -> None:
        location = jvm.java("org.apache.hadoop.fs.Path")(path).toUri()
        entry = jvm.static(
            "CatalogEntries",
            "create",
            self.identifier,
            self.is_managed,
            location,
            self.provider,
            jvm.scala_map(dict(self.options)),
            jvm.static("EntryColumns", "of", session, json.dumps({**self.options, "path": path})),
        )
        session.sessionState().catalog().createTable(entry, False, False)

    @contextmanager
    def _registering(self, path: str, version: int | None) -> Iterator[None]:
        step = f"registering the table {self.identifier.unquotedString()} in the session catalog"
        location = path.replace("\\", "\\\\").replace("'", "\\'")
        name = self.identifier.quotedString()
        hint = f"register it with CREATE TABLE {name} USING deltalog LOCATION '{location}'"
        with after_commit(self.uri, version, step, hint):
            yield


def qualified(jvm: Jvm, session: Any, name: str) -> Any:
    """Returns the TableIdentifier of a name in the session catalog."""
    parsed = session.sessionState().sqlParser().parseTableIdentifier(name)
    database = parsed.database()
    current = session.sessionState().catalog().getCurrentDatabase()
    return jvm.java("org.apache.spark.sql.catalyst.TableIdentifier")(
        parsed.table(), database if database.isDefined() else jvm.some(current), jvm.some("spark_catalog")
    )


def default_path(jvm: Jvm, session: Any, identifier: Any) -> str:
    """Returns the path at which Spark creates a managed table with this name.

    Raises Spark's error for a database that does not exist.
    """
    default = session.sessionState().catalog().defaultTablePath(identifier)
    return str(jvm.java("org.apache.hadoop.fs.Path")(default).toString())
