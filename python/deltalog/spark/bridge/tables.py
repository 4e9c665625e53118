"""Answers Java's calls about versions of tables that queries read."""

from functools import partial
from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.bridge.role import Role
from deltalog.spark.connect.commands import execute
from deltalog.spark.connect.exchange import ARGUMENTS, answer_text
from deltalog.spark.errors import InvalidArgumentError, NotATableError
from deltalog.spark.location import location_of
from deltalog.spark.options import Options
from deltalog.spark.read.portable_rows import portable_rows
from deltalog.spark.read.relation import (
    changes_relation,
    check_expected_schema,
    open_changes,
    open_snapshot,
    reopened_relation,
    snapshot_relation,
    table_state,
)


class TableCalls(Role):
    """Answers the calls of `TableCalls.java`."""

    def read(self, session: Any, options: str, schema: Any) -> str:
        asked = Options.of_json(options)
        if asked.wants_changes:
            if schema is not None:
                raise InvalidArgumentError(
                    "a change data feed is always read with the table's schema: omit the schema"
                )
            return changes_relation(session, open_changes(self._jvm, session, asked))
        snapshot = open_snapshot(self._jvm, session, asked)
        if schema is not None:
            check_expected_schema(snapshot, schema)
        return snapshot_relation(session, snapshot)

    def columns(self, session: Any, options: str) -> str:
        return open_snapshot(self._jvm, session, Options.of_json(options)).schema_json

    def state(self, session: Any, options: str) -> str:
        return table_state(session, open_snapshot(self._jvm, session, Options.of_json(options)))

    def reopened(self, session: Any, planner: str, options: str) -> str:
        return reopened_relation(self._jvm, session, planner, Options.of_json(options))

    def portable(self, session: Any, planner: str, schema: str, filters: str, time_zone: str) -> Any:
        return portable_rows(session, planner, schema, filters, time_zone)._jdf

    def answer(self, session: Any, options: str) -> str:
        asked = Options.of_json(options)
        perform = partial(execute, self._jvm, session, asked)
        return answer_text(perform, asked.command or "", asked.values.get(ARGUMENTS, "{}"))

    def exists(self, session: Any, options: str) -> bool:
        return self._exists(session, Options.of_json(options))

    def names_version(self, session: Any, options: str) -> bool:
        asked = Options.of_json(options)
        if self._exists(session, asked):
            return False
        if asked.wants_version:
            raise InvalidArgumentError(
                f"the path {asked.path} already names a version: leave out versionAsOf and timestampAsOf, or the "
                "version in the path"
            )
        return True

    def _exists(self, session: Any, options: Options) -> bool:
        """Returns whether there is a table. Raises an error if the location cannot be read."""
        location = location_of(self._jvm, session, options)
        try:
            Snapshot.open(location.uri, storage_options=location.storage_options)
        except NotATableError:
            return False
        return True
