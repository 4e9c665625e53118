"""What a file index of Spark asks its snapshot, as an object that the JVM can call."""

from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.callback import answer
from deltalog.spark.jvm import Jvm


class Planner:
    """Lives as long as the relation in the JVM does."""

    def __init__(self, jvm: Jvm, snapshot: Snapshot) -> None:
        self._jvm = jvm
        self._snapshot = snapshot

    def apply(self, request: Any) -> Any:
        return answer(self._jvm, self._plan, request)

    def _plan(self, request: list[Any]) -> Any:
        if request[0] == "totals":
            return f"{self._snapshot.num_files()} {self._snapshot.size_in_bytes()}"
        packed, _, _ = self._snapshot.plan_spark(request[1], request[2])
        return bytearray(packed)

    class Java:
        implements = ["java.util.function.Function"]  # noqa: RUF012 (the form that py4j wants)
