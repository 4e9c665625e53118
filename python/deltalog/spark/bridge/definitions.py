"""Answers Java's calls about definitions of tables."""

import json
from typing import Any

from deltalog._internal import expression_bytes, rule_functions
from deltalog.spark.bridge.role import Role
from deltalog.spark.options import Options
from deltalog.spark.secrecy import check_table_options
from deltalog.spark.sql import alterations, statements
from deltalog.spark.sql.definition import Definition


class DefinitionCalls(Role):
    """Answers the calls of `DefinitionCalls.java`."""

    def check_options(self, options: str) -> None:
        check_table_options(Options.of_json(options))

    def rule_functions(self) -> str:
        always, by_statement = rule_functions()
        # Spark's writers copy a value several times, so the values of one row get only a quarter of the limit.
        of_row = expression_bytes() // 4
        return json.dumps({"always": always, "byStatement": by_statement, "bytes": of_row})

    def create(self, session: Any, definition: str) -> None:
        statements.create(self._jvm, session, Definition.of(definition))

    def place(self, session: Any, definition: str) -> str:
        return statements.place(self._jvm, session, Definition.of(definition))

    def create_as_select(self, session: Any, definition: str, rows: Any, options: str) -> None:
        defined, asked = Definition.of(definition), Options.of_json(options)
        statements.create_as_select(self._jvm, session, defined, rows, asked)

    def alter(self, session: Any, options: str, changes: Any) -> None:
        alterations.alter(self._jvm, session, Options.of_json(options), list(changes))

    def relocated(self, session: Any, options: str, location: str) -> str:
        return alterations.relocated(self._jvm, session, Options.of_json(options), location)
