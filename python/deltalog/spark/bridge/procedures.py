"""Answers Java's calls about procedures."""

import json
from typing import Any

from deltalog.spark.bridge.role import Role
from deltalog.spark.options import Options
from deltalog.spark.sql import procedures


class ProcedureCalls(Role):
    """Answers the calls of `ProcedureCalls.java`."""

    def names(self) -> str:
        return " ".join(procedures.PROCEDURES)

    def describe(self, name: str) -> str:
        return procedures.find(name).to_json()

    def call(self, session: Any, name: str, table: str, options: str, arguments: str) -> str:
        asked = Options.of_json(options)
        return procedures.call(self._jvm, session, name, table, asked, json.loads(arguments))
