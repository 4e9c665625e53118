"""The state of a `DeltaTable`, and its calls to the core or the server."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrameReader, SparkSession

from deltalog._internal import Snapshot
from deltalog.spark.connect import exchange
from deltalog.spark.connect.server import has_our_catalog
from deltalog.spark.dml.own_frames import OwnFrames
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.sql import commands
from deltalog.spark.sql.entries import UPDATE_ENTRY
from deltalog.spark.sql.names import is_connect, location_in
from deltalog.spark.write.caches import refresh
from deltalog.spark.write.record import USER_METADATA


class TableHandle:
    """A table in a session, identified by its location."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        alias: str | None = None,
        store: Mapping[str, str] | None = None,
        own: OwnFrames | None = None,
        name: str | None = None,
    ) -> None:
        self._spark = spark
        self._path = path
        self._alias = alias
        self._store = dict(store or {})
        self._own = own or OwnFrames()
        self._name = name

    def _reader(self) -> DataFrameReader:
        return self._spark.read.format("deltalog").options(**self._store)

    def _refresh(self, version: int | None) -> None:
        """Makes Spark recompute cached rows of the table, which are outdated after the commit of the version."""
        if not is_connect(self._spark):
            location, _ = location_in(self._spark, self._path, self._store)
            refresh(Jvm.of(self._spark), self._spark._jsparkSession, location.uri, version)

    def _update_entry(self) -> None:
        """Updates the columns in the table's catalog entry."""
        if self._name is None:
            return
        if not is_connect(self._spark):
            jvm = Jvm.of(self._spark)
            jvm.static("EntryColumns", "update", self._spark._jsparkSession, self._name)
        elif has_our_catalog(self._spark):
            self._ask(UPDATE_ENTRY, name=self._name)

    def _change(self, command: str, **arguments: Any) -> None:
        """Executes a command that changes the table."""
        self._ask(command, **arguments, user_metadata=self._spark.conf.get(USER_METADATA, None))

    def _ask(self, command: str, **arguments: Any) -> Any:
        """Returns the result of a command on the newest version.

        Under Spark Connect, the server executes it, because the client may have no access to the table's files.
        """
        if not is_connect(self._spark):
            return commands.answer(self._newest(), command, arguments)
        options = {exchange.COMMAND: command, exchange.ARGUMENTS: json.dumps(arguments)}
        [row] = self._reader().options(**options).load(self._path).collect()
        return exchange.value_of(row[exchange.ANSWER])

    def _newest(self) -> Snapshot:
        """Opens the newest version in a classic session."""
        location, roots = location_in(self._spark, self._path, self._store)
        return Snapshot.open(location.uri, storage_options=location.storage_options, allowed_roots=roots)

    def _time_zone(self) -> str:
        return str(self._spark.conf.get("spark.sql.session.timeZone"))

    def _millis(self, timestamp: str) -> int:
        """Returns a time as milliseconds since the epoch."""
        query = "SELECT unix_millis(CAST(:time AS TIMESTAMP)) AS time"
        [found] = self._spark.sql(query, args={"time": timestamp}).collect()
        if found.time is None:
            raise InvalidArgumentError(f"{timestamp!r} is not a time")
        time: int = found.time
        return time

    def _reached_by(self) -> dict[str, str]:
        """Returns the options that determine how the store is accessed."""
        return {name: value for name, value in self._store.items() if name.lower() != "allowedroots"}
