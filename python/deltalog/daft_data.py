"""The classes through which Daft reads tables. Only `deltalog.daft` imports this module, and only if Daft is
installed.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pyarrow
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import RecordBatch
from daft.schema import Schema

from deltalog.daft_conditions import conjuncts
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.parts import Credentials, Parts
from deltalog.table.tasks import ScanTask

__all__ = ["TableSource"]


class TableSource(DataSource):  # type: ignore[misc]
    """The rows of a table at one version, for Daft."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._columns = parts.schema(None)

    @property
    def name(self) -> str:
        return f"deltalog {self._parts.snapshot.uri}"

    @property
    def schema(self) -> Any:
        return Schema.from_pyarrow_schema(self._columns)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[Any]:
        """Yields the tasks for a query. Daft evaluates the filter of the query again on their rows."""
        parts = self._parts
        if pushdowns.filters is not None:
            parts = self._filtered(pushdowns.filters)
        columns = pushdowns.columns
        if columns is not None:
            # Daft evaluates the filter again, so its columns have to be read, too.
            wanted = {*columns, *pushdowns.filter_required_column_names()}
            columns = [name for name in self._columns.names if name in wanted]
        schema = parts.schema(columns)
        for task in parts.tasks(None, columns):
            yield TableTask(task, schema, parts.credentials)

    def _filtered(self, predicate: Any) -> Parts:
        """Returns the rows that meet each part of a filter that the scan can evaluate."""
        parts = self._parts
        for text in conjuncts(predicate, self._columns):
            more = parts._replace(
                condition=text if parts.condition is None else f"{parts.condition} AND {text}"
            )
            try:
                more.schema([])
            except (InvalidArgumentError, UnsupportedFeatureError):
                continue
            parts = more
        return parts


class TableTask(DataSourceTask):  # type: ignore[misc]
    """A Daft task, which reads a part of a table."""

    def __init__(self, task: ScanTask, schema: pyarrow.Schema, credentials: Credentials) -> None:
        self._task = task
        self._columns = schema
        self._credentials = credentials

    @property
    def schema(self) -> Any:
        return Schema.from_pyarrow_schema(self._columns)

    async def read(self) -> AsyncIterator[Any]:
        """Yields the rows. Other Daft tasks continue while a batch is read."""
        batches = self._credentials.batches(self._task, None)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield RecordBatch.from_arrow_record_batches([batch], self._columns)
