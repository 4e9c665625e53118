"""Writes of rows."""

from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.bridge.role import Role
from deltalog.spark.location import location_of
from deltalog.spark.options import Options
from deltalog.spark.read.relation import snapshot_relation
from deltalog.spark.write import job
from deltalog.spark.write.outcome import after_commit


class WriteCalls(Role):
    """Answers `WriteCalls.java`."""

    def save(self, session: Any, options: str, rows: Any, mode: str) -> str:
        asked = Options.of_json(options)
        location = location_of(self._jvm, session, asked)
        version = job.save(self._jvm, session, rows, asked, mode, location)
        with after_commit(location.uri, version, "opening the table again", "read the table to continue"):
            newest = Snapshot.open(location.uri, storage_options=location.storage_options)
            return snapshot_relation(session, newest)

    def insert(self, session: Any, options: str, rows: Any, is_overwrite: bool) -> None:
        job.insert(self._jvm, session, rows, Options.of_json(options), is_overwrite)

    def truncate(self, session: Any, options: str) -> None:
        job.truncate(self._jvm, session, Options.of_json(options))
