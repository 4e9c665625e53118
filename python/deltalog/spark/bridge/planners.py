"""Answers Java's calls about planners, which are identified by keys."""

import json
from typing import Any

from deltalog.spark.bridge.role import Role
from deltalog.spark.read.planner import answers_of, planner_of


class PlannerCalls(Role):
    """Answers the calls of `PlannerCalls.java`. These methods need no session, and do not call the JVM."""

    def size(self, planner: str) -> int:
        return planner_of(planner).size()

    def plan(self, planner: str, filters: str, time_zone: str) -> Any:
        return planner_of(planner).plan(filters, time_zone)

    def answers(self, planner: str, filters: str, time_zone: str, columns: str) -> Any:
        return answers_of(planner, filters, time_zone, json.loads(columns))
