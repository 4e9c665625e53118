"""Writes the rows of a Spark task to files, in a Python worker."""

from collections.abc import Iterator
from typing import Any

from pyspark import TaskContext

from deltalog._internal import Fragment, WriteTask
from deltalog.spark.connect.place import Place

# The maximum number of tasks that can generate values of identity columns. A worker does not know how many tasks its
# job has.
_TASKS = 1 << 16


def written(task: WriteTask, place: Place, batches: Iterator[Any]) -> Fragment | None:
    """Writes Arrow batches to files, and returns the fragment that describes the files; None if there are no
    batches.
    """
    import pyarrow

    first = next(batches, None)
    if first is None:
        return None
    rows = (batch for part in ([first], batches) for batch in part)
    reader = pyarrow.RecordBatchReader.from_batches(first.schema, rows)
    return _numbered(task).write(reader, place.storage_options)


def _numbered(task: WriteTask) -> WriteTask:
    """Returns the task with the number of Spark's task, which decides the values of identity columns.

    A repeated attempt of a task generates the same values, and Spark commits the message of only one attempt. A task
    whose number is too high cannot generate values.
    """
    context = TaskContext.get()
    number = _TASKS if context is None else context.partitionId()
    return task.numbered(number, _TASKS) if number < _TASKS else task
