"""Definitions of tables."""

from typing import Any

from deltalog.spark.bridge.role import Role
from deltalog.spark.options import Options
from deltalog.spark.sql import alterations, statements
from deltalog.spark.sql.definition import Definition


class DefinitionCalls(Role):
    """Answers `DefinitionCalls.java`."""

    def create(self, session: Any, definition: str) -> None:
        statements.create(self._jvm, session, Definition.of(definition))

    def create_as_select(self, session: Any, definition: str, rows: Any, scala_options: Any) -> None:
        options = Options.of(self._jvm, scala_options)
        statements.create_as_select(self._jvm, session, Definition.of(definition), rows, options)

    def alter(self, session: Any, scala_options: Any, changes: Any) -> None:
        alterations.alter(self._jvm, session, Options.of(self._jvm, scala_options), list(changes))
