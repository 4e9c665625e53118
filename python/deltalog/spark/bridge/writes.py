"""Answers Java's calls about writes of rows."""

from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.bridge.role import Role
from deltalog.spark.dml import replacing
from deltalog.spark.errors import NotATableError
from deltalog.spark.location import Location, location_of
from deltalog.spark.options import Options
from deltalog.spark.read.relation import snapshot_relation
from deltalog.spark.write import job
from deltalog.spark.write.outcome import after_commit


class WriteCalls(Role):
    """Answers the calls of `WriteCalls.java`."""

    def save(self, session: Any, options: str, rows: Any, mode: str) -> str:
        asked = Options.of_json(options)
        location = location_of(self._jvm, session, asked)
        version = None
        if not asked.replaces_rows:
            version = job.save(self._jvm, session, rows, asked, mode, location)
        elif not self._replace(session, rows, asked, location, mode == "Overwrite"):
            # The table does not exist. If another writer creates it in the meantime, that table is not overwritten.
            version = job.save(self._jvm, session, rows, asked.without_replacing(), "ErrorIfExists", location)
        with after_commit(location.uri, version, "opening the table again", "read the table to continue"):
            newest = Snapshot.open(location.uri, storage_options=location.storage_options)
            return snapshot_relation(session, newest)

    def insert(self, session: Any, options: str, rows: Any, is_overwrite: bool) -> None:
        asked = Options.of_json(options)
        if not asked.replaces_rows:
            job.insert(self._jvm, session, rows, asked, is_overwrite)
            return
        location = location_of(self._jvm, session, asked)
        if not self._replace(session, rows, asked, location, is_overwrite):
            raise NotATableError(f"there is no Delta table at {location.uri}: it has been dropped since")

    def _replace(
        self, session: Any, rows: Any, options: Options, location: Location, overwrites: bool
    ) -> bool:
        return replacing.replace(self._jvm, session, rows, options, location, overwrites=overwrites)

    def truncate(self, session: Any, options: str) -> None:
        job.truncate(self._jvm, session, Options.of_json(options))
