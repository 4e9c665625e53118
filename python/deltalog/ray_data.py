"""The classes through which Ray reads and writes tables. Only `deltalog.ray` imports this module, when Ray is
installed.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple

import pyarrow
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasink, Datasource, ReadTask

from deltalog._internal import Fragment, WriteTask
from deltalog.conditions import NotTranslated, Rows, both, translated
from deltalog.parts import Credentials, Parts
from deltalog.pyarrow_conditions import conjuncts, fields, sql, tree
from deltalog.table.tasks import ScanTask

__all__ = ["TableDatasink", "TableDatasource"]

_PLACEHOLDER = pyarrow.schema([pyarrow.field("__bsp_stub", pyarrow.null())])
"""The schema of blocks for reads that need no columns, for example to count rows. It has a placeholder column, because
Ray would see no rows in a block without columns.

Ray's own data sources use the same name for the column, and Ray does not show the column to users.
"""


class _Read(NamedTuple):
    """The scan that the tasks execute, and how they filter its rows and choose columns."""

    parts: Parts
    columns: list[str]
    """The columns that the scan returns."""
    filter: Any
    """The filter that a task applies to the rows of the scan, as a pyarrow expression. None if the scan has applied
    it.
    """
    kept: list[str]
    """The columns that a task returns."""


class TableDatasource(Datasource):  # type: ignore[misc]
    """The rows of a table at one version, for Ray."""

    def __init__(self, parts: Parts, columns: list[str] | None) -> None:
        super().__init__()
        self._parts = parts
        self._schema = parts.schema(None)
        self._projection_map = None if columns is None else {name: name for name in columns}

    def get_name(self) -> str:
        return "Deltalog"

    def supports_projection_pushdown(self) -> bool:
        return True

    def supports_predicate_pushdown(self) -> bool:
        """Returns True. Ray passes the parts of a filter that can be converted to a pyarrow expression, and applies the
        other parts itself.
        """
        return True

    def apply_predicate(self, predicate_expr: Any) -> "TableDatasource":
        """Returns a source that applies a filter. Returns this source if neither the scan nor pyarrow can evaluate the
        filter on columns of these types; then Ray applies the filter itself.

        Ray compares some types that expressions of pyarrow do not compare, such as decimals with integers.
        """
        applied: TableDatasource = super().apply_predicate(predicate_expr)
        try:
            remaining = applied._read().filter
            if remaining is not None:
                self._schema.empty_table().filter(remaining)
        except (pyarrow.ArrowException, ArithmeticError, LookupError, TypeError, ValueError):
            return self
        return applied

    def estimate_inmemory_data_size(self) -> int:
        """Returns the total size of the files in bytes. The rows take more memory than this."""
        return self._parts.size()

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        """Returns at most `parallelism` tasks, with the columns and the filter that Ray has passed to this source."""
        read = self._read()
        schema = (
            pyarrow.schema([self._schema.field(name) for name in read.kept]) if read.kept else _PLACEHOLDER
        )
        is_counted = read.parts.condition is None and read.filter is None
        tasks = [
            ReadTask(
                partial(_blocks, read.parts.credentials, task, schema, read.filter),
                BlockMetadata(
                    num_rows=task.num_rows if is_counted else None,
                    size_bytes=task.size_in_bytes,
                    input_files=None,
                    exec_stats=None,
                ),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for task in read.parts.tasks(max(parallelism, 1), read.columns)
        ]
        return tasks or [_without_rows(schema)]

    def _read(self) -> _Read:
        parts, known = self._parts, self._schema.names
        kept = self._get_data_columns()
        kept = known if kept is None else kept
        predicate = self.get_current_predicate()
        if predicate is None:
            return _Read(parts, kept, None, kept)
        expression = predicate.to_pyarrow()
        try:
            whole = tree(expression)
        except NotTranslated:
            return _Read(parts, known, expression, kept)
        rows = Rows(parts.snapshot, parts.is_pinned)
        condition, others = translated(conjuncts(whole), lambda node: sql(node, self._schema), rows)
        parts = parts._replace(condition=both(parts.condition, condition))
        if not others:
            return _Read(parts, kept, None, kept)
        needed = {*kept, *fields(whole)}
        return _Read(parts, [name for name in known if name in needed], expression, kept)


def _blocks(
    credentials: Credentials, task: ScanTask, schema: pyarrow.Schema, selection: Any
) -> Iterator[pyarrow.Table]:
    """Yields the rows of a task. If there are none, yields one empty table, from which Ray learns the columns."""
    is_empty = True
    for batch in credentials.batches(task, None):
        rows = pyarrow.Table.from_batches([batch])
        if selection is not None:
            rows = rows.filter(selection)
        is_empty = False
        if schema == _PLACEHOLDER:
            yield pyarrow.table([pyarrow.nulls(rows.num_rows)], schema)
        else:
            yield rows.select(schema.names)
    if is_empty:
        yield schema.empty_table()


def _without_rows(schema: pyarrow.Schema) -> ReadTask:
    """Returns a task that yields one empty table. Without any task, Ray would not know the columns of the dataset."""
    metadata = BlockMetadata(num_rows=0, size_bytes=0, input_files=None, exec_stats=None)
    return ReadTask(partial(_empty, schema), metadata, schema=schema)


def _empty(schema: pyarrow.Schema) -> list[pyarrow.Table]:
    return [schema.empty_table()]


class TableDatasink(Datasink[list[Fragment]]):  # type: ignore[misc]
    """Writes blocks as files of a distributed write. The fragments are complete when all tasks have ended."""

    def __init__(self, task: WriteTask, credentials: Credentials) -> None:
        super().__init__()
        self._task = task
        self._credentials = credentials
        self.fragments: list[Fragment] = []

    def get_name(self) -> str:
        return "Deltalog"

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[Fragment]:
        """Writes the rows of a task, block by block.

        The blocks of a task may have different types: if all values of a column in a block are NULL, the column may
        have the type null there, and a block without rows may have no columns. Consecutive blocks with equal types
        become one fragment.
        """
        tables = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
        filled = (table for table in tables if table.num_rows > 0)
        return [
            self._task.write(alike, *self._credentials)
            for _, alike in groupby(filled, key=lambda table: table.schema)
        ]

    def on_write_complete(self, write_result: Any) -> None:
        self.fragments = list(chain.from_iterable(write_result.write_returns))
