"""The object that receives all calls from the JVM."""

import functools
import re
from collections.abc import Callable
from typing import Any

from deltalog.spark.bridge.definitions import DefinitionCalls
from deltalog.spark.bridge.planners import PlannerCalls
from deltalog.spark.bridge.procedures import ProcedureCalls
from deltalog.spark.bridge.refusals import Refusals
from deltalog.spark.bridge.role import Role
from deltalog.spark.bridge.statements import StatementCalls
from deltalog.spark.bridge.stream_sinks import StreamSinkCalls
from deltalog.spark.bridge.stream_sources import StreamSourceCalls
from deltalog.spark.bridge.tables import TableCalls
from deltalog.spark.bridge.writes import WriteCalls
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.callback import answer

ROLES: tuple[type[Role], ...] = (
    TableCalls,
    PlannerCalls,
    WriteCalls,
    DefinitionCalls,
    StatementCalls,
    ProcedureCalls,
    StreamSinkCalls,
    StreamSourceCalls,
    Refusals,
)


class Bridge:
    """Passes calls to the classes that answer them, for all sessions of a JVM.

    Args:
        failed: converts the exception of a call to a `DeltalogException`.
    """

    def __init__(self, jvm: Jvm, failed: Callable[[Jvm, BaseException], Any]) -> None:
        self._failed = functools.partial(failed, jvm)
        self._roles = {role.__name__: role(jvm) for role in ROLES}

    def call(self, role: str, method: str, *arguments: Any) -> Any:
        """Executes one call from `PythonCalls.java`. The role is the name of the interface with the method."""
        return answer(self._failed, self._execute, role, method, *arguments)

    def ping(self) -> None:
        """Answers the calls of `PythonWatch.java`, which checks whether this process is still running."""

    def _execute(self, role: str, method: str, *arguments: Any) -> Any:
        return getattr(self._roles[role], python_name(method))(*arguments)


def python_name(java_name: str) -> str:
    """Returns the name that a method of an interface has in Python: `create_as_select` for `createAsSelect`."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", java_name)
