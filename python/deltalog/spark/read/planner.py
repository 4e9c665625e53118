"""What a file index of Spark asks its snapshot, as an object that the JVM can call."""

import itertools
import logging
import os
import tempfile
from typing import Any

from deltalog._internal import Snapshot, SparkChanges, SparkPlan
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.callback import answer
from deltalog.spark.read import file_errors

# py4j sends bytes as one line of base64 text, which it handles slowly: a large listing goes through a file.
_INLINE = 1 << 20

_log = logging.getLogger("deltalog.spark")
_failures = itertools.count()


class Planner:
    """Lives as long as the relation in the JVM does."""

    def __init__(self, jvm: Jvm, snapshot: Snapshot) -> None:
        self._jvm = jvm
        self.snapshot = snapshot

    def apply(self, request: Any) -> Any:
        return answer(self._jvm, self._plan, request)

    def _plan(self, request: list[Any]) -> Any:
        if request[0] == "size":
            return self._size()
        if request[0] == "answers":
            return self._packed_answers(request[1], request[2], list(request[3]))
        file_errors.remember(self)
        return _packed(self._files(request[1], request[2]))

    def _size(self) -> int:
        return self.snapshot.size_in_bytes()

    def _packed_answers(self, filters: str, time_zone: str, columns: list[str]) -> Any:
        """Returns the answers of the log, or None where it has none.

        A failure must not fail the query, which the data files can still answer; the first one is logged.
        """
        try:
            answers = self._answers(filters, time_zone, columns)
            return None if answers is None else _packed(answers)
        except Exception:  # noqa: BLE001 (whatever it is, the files can still be read)
            _warn_once(self.snapshot)
            return None

    def _answers(self, filters: str, time_zone: str, columns: list[str]) -> bytes | None:
        answers = self.snapshot.spark_answers(filters, time_zone, columns)
        if answers is not None:
            _log.info("%s v%d: the log answers, no file is read", self.snapshot.uri, self.snapshot.version)
        return answers

    def _files(self, filters: str, time_zone: str) -> SparkPlan:
        plan = self.snapshot.plan_spark(filters, time_zone)
        _log.info(
            "%s v%d: %d of %d files may hold matching rows",
            self.snapshot.uri,
            self.snapshot.version,
            plan.kept,
            plan.total,
        )
        return plan

    class Java:
        implements = ["java.util.function.Function"]  # noqa: RUF012 (the form that py4j wants)


class ChangesPlanner(Planner):
    """The same for the files of a change data feed."""

    def __init__(self, jvm: Jvm, changes: SparkChanges) -> None:
        super().__init__(jvm, changes.snapshot)
        self._changes = changes

    def _size(self) -> int:
        return self._changes.size_in_bytes()

    def _answers(self, filters: str, time_zone: str, columns: list[str]) -> bytes | None:
        return None

    def _files(self, filters: str, time_zone: str) -> SparkPlan:
        plan = self._changes.plan_spark(filters, time_zone)
        versions = self._changes.versions
        _log.info(
            "%s changes of the versions %s: %d of %d files may hold matching rows",
            self.snapshot.uri,
            versions,
            plan.kept,
            plan.total,
        )
        return plan


def _warn_once(snapshot: Snapshot) -> None:
    """Logs the exception being handled, with its traceback, unless one was logged before."""
    if next(_failures) == 0:
        _log.warning(
            "%s v%d: the log cannot answer an aggregate, so the data files are read; this is logged once",
            snapshot.uri,
            snapshot.version,
            exc_info=True,
        )


def _packed(packed: SparkPlan | bytes) -> Any:
    """As the Java side takes it: the bytes, or the name of a file with them that it maps and deletes."""
    if len(packed) <= _INLINE:
        return bytearray(packed if isinstance(packed, bytes) else packed.to_bytes())
    handle, name = tempfile.mkstemp(prefix="deltalog-plan-")
    with os.fdopen(handle, "wb") as file:
        if isinstance(packed, bytes):
            file.write(packed)
    if not isinstance(packed, bytes):
        packed.write(name)
    return name
