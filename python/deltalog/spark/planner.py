"""What a file index of Spark asks its snapshot, as an object that the JVM can call."""

import logging
import tempfile
from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.callback import answer
from deltalog.spark.jvm import Jvm

# py4j sends bytes as one line of base64 text, which it handles slowly: a large listing goes through a file.
_INLINE = 1 << 20

_log = logging.getLogger("deltalog.spark")


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
        packed, kept, total = self._snapshot.plan_spark(request[1], request[2])
        _log.info("%s v%d: %d of %d files may hold matching rows", self._snapshot.uri, self._snapshot.version, kept, total)
        return bytearray(packed) if len(packed) <= _INLINE else _spill(packed)

    class Java:
        implements = ["java.util.function.Function"]  # noqa: RUF012 (the form that py4j wants)


def _spill(packed: bytes) -> str:
    """A file that the JVM reads and deletes."""
    with tempfile.NamedTemporaryFile(prefix="deltalog-plan-", delete=False) as file:
        file.write(packed)
        return file.name
