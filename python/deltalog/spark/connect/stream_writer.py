"""A table as the sink of a stream of Python's data source API: tasks write files, and one process commits each batch.

    driver, for each batch                 workers                        driver, another process
    SparkWrite.begin, token, task    →     WriteTask.write (Arrow)   →    SparkWrite.resume, commit_fragments

A commit records the number of the batch under the id of the query, as in classic sessions, so that a batch that comes
again after a failure is not written again. Spark tells the id and the number to tasks, and to the commit only the
number. The token travels with the messages of the tasks, because nothing else connects the processes of a batch.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from deltalog import upkeep
from deltalog._internal import (
    AlreadyApplied,
    DeltaError,
    Fragment,
    Snapshot,
    SparkWrite,
    WriteTask,
    __version__,
)
from deltalog.arguments import TableOptions
from deltalog.spark import schema as schemas
from deltalog.spark.connect.place import place_of
from deltalog.spark.connect.task_files import written
from deltalog.spark.errors import InvalidArgumentError, NotATableError
from deltalog.spark.options import Options
from deltalog.spark.streams.known_options import WRITING, ensure_known
from deltalog.spark.write.evolution import schema_mode
from deltalog.spark.write.record import log_applied

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"

_log = logging.getLogger("deltalog.spark")


class _Begun(NamedTuple):
    """A batch that tasks may write."""

    token: bytes
    task: WriteTask
    recorded: Mapping[str, int]
    """The progress of applications that the table has recorded."""


class BatchMessage(WriterCommitMessage):
    """What a task has written of a batch of a query."""

    def __init__(
        self, query: str, token: bytes, fragment: Fragment | None, is_repeated: bool = False
    ) -> None:
        self.query = query
        self.token = token
        self.fragment = fragment
        self.is_repeated = is_repeated
        """Whether the table has recorded the batch, so that it was not written again."""


class StreamWriter(DataSourceStreamWriter, DataSourceArrowWriter):
    """A writer of the batches of a query. Both of Spark's classes say that its rows come as Arrow data: the class that
    means it for streams is only in Spark 4.1 and newer.

    Spark makes a writer to start the tasks of a batch, and another one to commit it. A batch begins when the writer is
    pickled for its tasks, so that the other one does not begin a batch, too.
    """

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        options.check_stream_write(is_complete=overwrite)
        ensure_known(options, WRITING)
        self._options = options
        self._place = place_of(options)
        self._schema = schema
        self._overwrite = overwrite
        self._begun: _Begun | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._begun is None:
            self._begun = self._begin()
        return self.__dict__

    def _begin(self) -> _Begun:
        uri, storage_options = self._place
        try:
            base = Snapshot.open(uri, storage_options=storage_options)
        except NotATableError:
            base = None
        write = SparkWrite.begin(
            uri,
            schemas.of_data(self._schema.json()),
            "overwrite" if self._overwrite else "append",
            TableOptions(None, self._options.table_configuration()),
            storage_options=storage_options,
            base=base,
            schema_mode=schema_mode(self._options, settings=None),
        )
        if not isinstance(write, SparkWrite):
            raise TypeError("a write without an application was applied")
        write.ensure_evaluable()
        recorded = {} if base is None else base.transaction_versions()
        return _Begun(write.token(), write.task(), recorded)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        if self._begun is None:
            raise TypeError("the batch has not begun")
        token, task, recorded = self._begun
        context = TaskContext.get()
        query, batch = (
            None if context is None else context.getLocalProperty(name) for name in (_QUERY, _BATCH)
        )
        if query is None or batch is None:
            raise InvalidArgumentError(
                "a batch is written by a streaming query of Spark, which has an id; use write for other rows"
            )
        if query in recorded and int(batch) <= recorded[query]:
            return BatchMessage(query, token, None, is_repeated=True)
        return BatchMessage(query, token, written(task, self._place, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # type: ignore[override]  # noqa: N803
        found = _found(messages)
        if len(found) != len(messages) or not found:
            raise InvalidArgumentError("a task of the batch has not said what it has written")
        query, token = found[0].query, found[0].token
        if any(message.is_repeated for message in found):
            _log.info(
                "the table %s has already recorded batch %d of query %s", self._place.uri, batchId, query
            )
            self._delete(token)
            return
        try:
            write = SparkWrite.resume(token, self._place.storage_options, (query, batchId))
        except DeltaError:
            self._delete(token)
            raise
        mode = "Complete" if self._overwrite else "Append"
        outcome = write.commit_fragments(
            [message.fragment for message in found if message.fragment is not None],
            "STREAMING UPDATE",
            {"outputMode": mode, "queryId": query, "epochId": str(batchId)},
            f"Apache-Spark-Python deltalog/{__version__}",
            self._options.values.get("usermetadata"),
        )
        # Spark ends this process without letting it wait for its threads.
        upkeep.wait()
        if isinstance(outcome, AlreadyApplied):
            log_applied(outcome, self._place.uri)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # type: ignore[override]  # noqa: N803
        """Deletes the files of a batch if one of its tasks has failed.

        A commit that failed has done that itself, unless its outcome is unknown.
        """
        found = _found(messages)
        if found and None in messages:
            self._delete(found[0].token)

    def _delete(self, token: bytes) -> None:
        with contextlib.suppress(DeltaError):  # The first error is the one to raise.
            SparkWrite.delete(token, self._place.storage_options)


def _found(messages: list[WriterCommitMessage | None]) -> list[BatchMessage]:
    return [message for message in messages if isinstance(message, BatchMessage)]
