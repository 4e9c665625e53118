"""Writes of rows."""

from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.bridge.role import Role
from deltalog.spark.location import uri_of
from deltalog.spark.options import Options
from deltalog.spark.read.relation import snapshot_relation
from deltalog.spark.write import job
from deltalog.spark.write.outcome import after_commit


class WriteCalls(Role):
    """Answers `WriteCalls.java`."""

    def save(self, session: Any, options: str, rows: Any, mode: str) -> str:
        asked = Options.of_json(options)
        uri = uri_of(self._jvm, session, asked.path)
        version = job.save(self._jvm, session, rows, asked, mode)
        with after_commit(uri, version, "opening the table again", "read the table to continue"):
            return snapshot_relation(session, Snapshot.open(uri))

    def insert(self, session: Any, options: str, rows: Any, is_overwrite: bool) -> None:
        job.insert(self._jvm, session, rows, Options.of_json(options), is_overwrite)

    def truncate(self, session: Any, options: str) -> None:
        job.truncate(self._jvm, session, Options.of_json(options))
