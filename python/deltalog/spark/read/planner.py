"""Planners, which list the files of snapshots for Spark's file indexes.

The JVM refers to a planner by a key, which is a string. (A reference to the Python object would keep the planner alive
until the JVM's next garbage collection.) Only a limited number of planners is kept. If a planner was dropped, it is
created again from its key, with the same version of the same table.
"""

import contextlib
import itertools
import json
import logging
import os
import tempfile
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from deltalog._internal import (
    InvalidArgumentError,
    Snapshot,
    SparkBatch,
    SparkChanges,
    SparkPlan,
    TableStream,
)
from deltalog.arguments import ChangeRange
from deltalog.spark.location import Location, location_with
from deltalog.spark.read import file_errors, open_streams
from deltalog.spark.read.table_version import TableVersion
from deltalog.table.stream import StreamArguments

# py4j sends bytes slowly, as one line of base64 text, so large listings are passed through a file.
_INLINE = 1 << 20
_KEPT = 128

_log = logging.getLogger("deltalog.spark")
_failures = itertools.count()
_lock = threading.Lock()
_planners: "OrderedDict[str, Planner]" = OrderedDict()
_needed: "dict[str, Planner]" = {}


class Planner:
    """Lists the files of one version of a table."""

    _is_stream = False

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._version = TableVersion.of(snapshot)

    @property
    def key(self) -> str:
        """A description of the planner. Planners with equal keys return equal results."""
        return json.dumps(self._parts())

    def _parts(self) -> dict[str, Any]:
        return self._version._asdict()

    @property
    def location(self) -> Location:
        """The location of the table, with the options with which its store was accessed when the version was opened."""
        return location_with(self._version.location, self._version.uri)

    def size(self) -> int:
        """Returns the total size of all files in bytes."""
        return self.snapshot.size_in_bytes()

    def answers(self, filters: str, time_zone: str, columns: list[str]) -> Any:
        """Returns packed rows, from which aggregates are computed without reading files; None if the log does not
        contain all values exactly.
        """
        answers = self._answers(filters, time_zone, columns)
        return None if answers is None else packed(answers)

    def plan(self, filters: str, time_zone: str) -> Any:
        """Returns the packed list of files that may contain matching rows."""
        file_errors.remember(self._version, is_stream=self._is_stream)
        return packed(self._files(filters, time_zone))

    def _answers(self, filters: str, time_zone: str, columns: list[str]) -> bytes | None:
        answers = self.snapshot.spark_answers(filters, time_zone, columns)
        if answers is not None:
            _log.info("%s v%d: the log answers, no file is read", self.snapshot.uri, self.snapshot.version)
        return answers

    def _files(self, filters: str, time_zone: str) -> SparkPlan:
        plan = self.snapshot.plan_spark(filters, time_zone)
        _log.info(
            "%s v%d: %d of %d files may contain matching rows",
            self.snapshot.uri,
            self.snapshot.version,
            plan.kept,
            plan.total,
        )
        return plan


class StatementPlanner(Planner):
    """Lists the files of a statement that changes rows. The list is always the same, because the statement refers to
    the files by number.
    """

    def __init__(self, snapshot: Snapshot, plan: SparkPlan) -> None:
        super().__init__(snapshot)
        self._plan = plan
        self._id = str(uuid.uuid4())

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), "statement": self._id}

    def _answers(self, filters: str, time_zone: str, columns: list[str]) -> bytes | None:
        return None

    def _files(self, filters: str, time_zone: str) -> SparkPlan:
        return self._plan


class ChangesPlanner(Planner):
    """Lists the files of a change data feed."""

    def __init__(self, changes: SparkChanges) -> None:
        super().__init__(changes.snapshot)
        self._changes = changes

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), "changes": self._changes.versions}

    def size(self) -> int:
        return self._changes.size_in_bytes()

    def _answers(self, filters: str, time_zone: str, columns: list[str]) -> bytes | None:
        return None

    def _files(self, filters: str, time_zone: str) -> SparkPlan:
        plan = self._changes.plan_spark(filters, time_zone)
        versions = self._changes.versions
        _log.info(
            "%s changes of the versions %s: %d of %d files may contain matching rows",
            self.snapshot.uri,
            versions,
            plan.kept,
            plan.total,
        )
        return plan


class Batch(NamedTuple):
    """Identifies a batch of a stream, so that its planner can be created again."""

    stream: str
    """The id of the stream, which identifies it as long as it is open."""
    content: StreamArguments
    start: str | None
    """The offset where the batch begins; None for the beginning of the stream."""
    end: str
    is_tracked: bool = False
    """Whether the stream records its schemas. If it does, its rows can only be read as long as it is open."""


class BatchPlanner(Planner):
    """Lists the files of a batch of a stream."""

    _is_stream = True

    def __init__(self, stream: TableStream, version: TableVersion, batch: Batch) -> None:
        self.snapshot = stream.snapshot
        self._version = version
        self._batch = batch
        self._rows = SparkBatch(stream, batch.start, batch.end)

    def _parts(self) -> dict[str, Any]:
        return batch_parts(self._version, self._batch)

    def size(self) -> int:
        return self._rows.size_in_bytes()

    def _answers(self, filters: str, time_zone: str, columns: list[str]) -> bytes | None:
        return None

    def _files(self, filters: str, time_zone: str) -> SparkPlan:
        plan = self._rows.plan_spark(filters, time_zone)
        _log.info(
            "%s stream up to %s: %d of %d files may contain matching rows",
            self.snapshot.uri,
            self._batch.end,
            plan.kept,
            plan.total,
        )
        return plan


def answers_of(key: str, filters: str, time_zone: str, columns: Any) -> Any:
    """Returns the answers of the planner with this key; see `Planner.answers`.

    A failure does not fail the query, which can still read the data files. The first failure is logged.
    """
    try:
        return planner_of(key).answers(filters, time_zone, list(columns))
    except Exception:  # noqa: BLE001 (the files can still be read)
        if next(_failures) == 0:
            table = key_of(key).table
            _log.warning(
                "%s v%d: the log cannot answer an aggregate, so the data files are read; this is logged once",
                table.uri,
                table.version,
                exc_info=True,
            )
        return None


def register(planner: Planner) -> str:
    """Keeps a planner and returns its key for `planner_of`."""
    key = planner.key
    with _lock:
        _planners[key] = planner
        _planners.move_to_end(key)
        while len(_planners) > _KEPT:
            _planners.popitem(last=False)
    return key


def forget() -> None:
    """Drops all planners. They are created again from their keys when they are needed."""
    with _lock:
        _planners.clear()


@contextmanager
def kept(planner: Planner) -> Iterator[str]:
    """Keeps a planner that cannot be created again, and yields its key."""
    key = planner.key
    with _lock:
        _needed[key] = planner
    try:
        yield key
    finally:
        with _lock:
            del _needed[key]


def planner_of(key: str) -> Planner:
    """Returns the planner with this key; creates it again if it was dropped."""
    with _lock:
        if key in _needed:
            return _needed[key]
        planner = _planners.get(key)
        if planner is not None:
            _planners.move_to_end(key)
            return planner
    parts = key_of(key)
    if parts.is_of_statement:
        raise InvalidArgumentError(
            "the rows of a statement that changes rows can be read by that statement only"
        )
    if parts.batch is not None:
        found = open_streams.find(parts.batch.stream)
        if found is not None:
            # This planner is not kept, so that it does not outlive its stream.
            return BatchPlanner(found.stream, parts.table, parts.batch)
        if parts.batch.is_tracked:
            raise InvalidArgumentError(
                "a batch of a stream that records its schemas can only be read while its query runs "
                f"(table {parts.table.uri})"
            )
    planner = _opened(parts)
    register(planner)
    return planner


class PlannerKey(NamedTuple):
    """The parts of a planner's key."""

    table: TableVersion
    """The version that is read. For a change data feed, this is the last version; for a stream, the version whose
    schema it has.
    """
    changes: list[int] | None
    """The first and last version of a change data feed."""
    batch: Batch | None
    """The batch of a stream."""
    is_of_statement: bool

    @property
    def is_version(self) -> bool:
        """Whether the rows of one version are read."""
        return self.changes is None and self.batch is None


def key_of(text: str) -> PlannerKey:
    """Returns the parts of a planner's key."""
    parts = json.loads(text)
    changes, batch = parts.pop("changes", None), parts.pop("batch", None)
    is_of_statement = parts.pop("statement", None) is not None
    table = TableVersion(**{**parts, "allowed_roots": tuple(parts["allowed_roots"])})
    if batch is not None:
        batch = Batch(**{**batch, "content": StreamArguments(**batch["content"])})
    return PlannerKey(table, changes, batch, is_of_statement)


def batch_key(table: TableVersion, batch: Batch) -> str:
    """Returns the key of a batch's planner without creating the planner."""
    return json.dumps(batch_parts(table, batch))


def batch_parts(table: TableVersion, batch: Batch) -> dict[str, Any]:
    """Returns the parts of the key that `batch_key` returns, before they are encoded as JSON."""
    return {**table._asdict(), "batch": {**batch._asdict(), "content": batch.content._asdict()}}


def _opened(key: PlannerKey) -> Planner:
    snapshot = key.table.open()
    if key.changes is not None:
        first, last = key.changes
        return ChangesPlanner(snapshot.spark_changes(ChangeRange(first, last)))
    if key.batch is not None:
        return BatchPlanner(TableStream(snapshot, key.batch.content), key.table, key.batch)
    return Planner(snapshot)


def packed(plan: SparkPlan | bytes) -> Any:
    """Returns the bytes, or, if there are many, the name of a file that contains them. The JVM maps and deletes the
    file.
    """
    if len(plan) <= _INLINE:
        return bytearray(plan if isinstance(plan, bytes) else plan.to_bytes())
    handle, name = tempfile.mkstemp(prefix="deltalog-plan-")
    try:
        with os.fdopen(handle, "wb") as file:
            if isinstance(plan, bytes):
                file.write(plan)
        if not isinstance(plan, bytes):
            plan.write(name)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    return name
