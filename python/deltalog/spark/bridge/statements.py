"""Answers Java's calls about DELETE, UPDATE and MERGE."""

from typing import Any

from deltalog.spark import schema
from deltalog.spark.bridge.role import Role
from deltalog.spark.dml.execute import counts, execute
from deltalog.spark.read.planner import planner_of
from deltalog.spark.write import evolution


class StatementCalls(Role):
    """Answers the calls of `StatementCalls.java`."""

    def change(self, session: Any, statement: Any, description: str) -> str:
        return " ".join(map(str, counts(*execute(self._jvm, session, statement, description))))

    def evolved(self, planner: str, data_schema: str) -> str:
        return evolution.changed_columns(planner_of(planner).snapshot, schema.of_data(data_schema))
