"""The server's part of a statement under Spark Connect: tasks write rows and record positions, and one process commits.

    driver                            workers                        driver, another process
    StatementTask.begin        →      StatementTask.run (Arrow) →    StatementTask.commit

Without deletion vectors, the process that commits also copies the remaining rows of the affected files.
"""

import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from deltalog import upkeep
from deltalog._internal import (
    AlreadyApplied,
    DeltaError,
    Snapshot,
    SparkStatement,
    SparkWrite,
    StatementFragment,
    StatementTask,
    __version__,
)
from deltalog.spark.connect.place import Place
from deltalog.spark.connect.statement import StatementRequest
from deltalog.spark.dml import identities
from deltalog.spark.dml.text import StatementText
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.write.record import log_applied


class Committing(NamedTuple):
    """The arguments that describe the commit of a statement, as the core expects them."""

    text: StatementText
    reads: tuple[str, str] | None
    keeps_matches: bool
    matches_once: bool
    source_rows: int
    started_ms: int
    engine_info: str
    user_metadata: str | None
    app_transaction: tuple[str, int] | None


class StatementMessage(WriterCommitMessage):
    """The result of a task."""

    def __init__(self, fragment: StatementFragment) -> None:
        self.fragment = fragment


def statement_writer(place: Place, roots: list[str], text: str) -> "StatementWriter":
    """Checks a statement, given as JSON, and returns the writer of its rows."""
    request = StatementRequest.from_json(text)
    uuid.UUID(request.statement_id)  # The id is checked because it becomes the name of a directory.
    uri, storage_options = place
    snapshot = Snapshot.open(
        uri, version=request.version, storage_options=storage_options, allowed_roots=roots
    )
    if snapshot.table_id != request.table_id:
        raise InvalidArgumentError(
            f"the table {uri} was replaced by another one while the statement was planned"
        )
    write = _write_of(snapshot)
    identities.check_assigned(write, request.assigned)
    identities.check_given(write, request.given)
    task, applied = StatementTask.begin(
        snapshot, request.text.name, request.statement_id, request.app_transaction
    )
    if applied is not None:
        log_applied(applied, uri)
    return StatementWriter(place, roots, request, None if applied is not None else task)


def _write_of(snapshot: Snapshot) -> SparkWrite:
    """Begins a statement, and returns its write, which provides the rules of the table."""
    begun = SparkStatement.begin(snapshot)
    if isinstance(begun, AlreadyApplied):
        raise TypeError("a statement without an application was applied")
    return begun[1]


class StatementWriter(DataSourceArrowWriter):
    """A writer whose workers carry out tasks of a statement. If the table has already recorded the statement, there is
    no task and nothing is written.
    """

    def __init__(
        self, place: Place, roots: list[str], request: StatementRequest, task: StatementTask | None
    ) -> None:
        self._place, self._roots, self._request, self._task = place, roots, request, task
        self._started_ms = round(1000 * time.time())

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        import pyarrow

        first = next(iterator, None)
        if first is None or self._task is None:
            return WriterCommitMessage()
        batches = (batch for part in ([first], iterator) for batch in part)
        reader = pyarrow.RecordBatchReader.from_batches(first.schema, batches)
        return StatementMessage(self._task.run(reader, self._place.storage_options))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._task is None:
            return
        request = self._request
        try:
            snapshot = Snapshot.open(
                self._place.uri,
                version=request.version,
                storage_options=self._place.storage_options,
                allowed_roots=self._roots,
            )
        except DeltaError:
            self._delete()
            raise
        committing = Committing(
            request.text,
            request.reads,
            # A MERGE that inserts rows without a match also depends on rows that match but are not changed.
            bool(request.text.not_matched),
            request.matches_once,
            request.source_rows,
            self._started_ms,
            f"Apache-Spark-Python deltalog/{__version__}",
            request.user_metadata,
            request.app_transaction,
        )
        fragments = [message.fragment for message in messages if isinstance(message, StatementMessage)]
        done = self._task.commit(snapshot, committing, fragments)
        # Spark ends this process without waiting for its threads.
        upkeep.wait()
        if isinstance(done, AlreadyApplied):
            log_applied(done, self._place.uri)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Deletes the files of a job that failed. In this case, the message of at least one task is missing.

        Spark also calls this method after a failed commit. In that case the commit has already deleted the files,
        unless its outcome is unknown.
        """
        if None in messages:
            self._delete()

    def _delete(self) -> None:
        if self._task is not None:
            with contextlib.suppress(DeltaError):  # The first error is the one to raise.
                self._task.delete(self._place.storage_options)
