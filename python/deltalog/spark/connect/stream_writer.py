"""A table as the sink of a stream, through Spark's Python data source API. Tasks write files, and a Python process on
the driver commits each batch.

    driver, for each batch                 workers                        driver, another process
    SparkWrite.begin, token, task    →     WriteTask.write (Arrow)   →    SparkWrite.resume, commit_fragments

Each commit records the id of the query and the number of the batch, as in classic sessions, so that a batch that Spark
repeats after a failure is not written again. Spark passes the id and the number to the tasks, but only the number to
the process that commits. The tasks' messages therefore contain the id of the query and the token of the write.
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
    """A batch whose write has begun, so that tasks can write files."""

    token: bytes
    task: WriteTask
    recorded: Mapping[str, int]
    """The last batch that the table has recorded for each query (or application), by its id."""


class BatchMessage(WriterCommitMessage):
    """The message of a task to the process that commits the batch."""

    def __init__(
        self, query: str, token: bytes, fragment: Fragment | None, is_repeated: bool = False
    ) -> None:
        self.query = query
        self.token = token
        self.fragment = fragment
        self.is_repeated = is_repeated
        """Whether the task wrote nothing, because the table had already recorded the batch."""


class StreamWriter(DataSourceStreamWriter, DataSourceArrowWriter):
    """Writes the batches of a query.

    Spark passes Arrow data to a subclass of both base classes. Only Spark 4.1 and newer have a single class for this.

    For each batch, Spark makes one writer for the tasks and another one for the commit. Only the first is pickled, so
    the batch begins in `__getstate__`.
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
                "a batch can only be written by a streaming query of Spark, which has an id; use write for other rows"
            )
        if query in recorded and int(batch) <= recorded[query]:
            return BatchMessage(query, token, None, is_repeated=True)
        return BatchMessage(query, token, written(task, self._place, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # type: ignore[override]  # noqa: N803
        found = _found(messages)
        if len(found) != len(messages) or not found:
            raise InvalidArgumentError("a task of the batch has not reported its files")
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
        # Spark ends this process without waiting for its threads.
        upkeep.wait()
        if isinstance(outcome, AlreadyApplied):
            log_applied(outcome, self._place.uri)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # type: ignore[override]  # noqa: N803
        """Deletes the files of a batch if one of its tasks has failed.

        If the commit failed, it has deleted the files itself, unless it is unknown whether the commit succeeded.
        """
        found = _found(messages)
        if found and None in messages:
            self._delete(found[0].token)

    def _delete(self, token: bytes) -> None:
        with contextlib.suppress(DeltaError):  # Raise the error that caused the deletion, and not this one.
            SparkWrite.delete(token, self._place.storage_options)


def _found(messages: list[WriterCommitMessage | None]) -> list[BatchMessage]:
    return [message for message in messages if isinstance(message, BatchMessage)]
