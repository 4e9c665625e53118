"""Reads tables as pyarrow datasets: `deltalog.pyarrow.dataset(table)`.

A reader of a dataset passes columns and a filter, and deltalog's scan evaluates the parts of the filter that it can.
Such readers are `polars.scan_pyarrow_dataset`, and any other library that accepts a `pyarrow.dataset.Dataset`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.conditions import Location, NotTranslated, Rows, both, translated
from deltalog.errors import UnsupportedFeatureError, hinted, wrong_argument
from deltalog.extras import required
from deltalog.pyarrow_conditions import conjuncts, fields, sql, tree

if TYPE_CHECKING:
    import pyarrow.dataset

__all__ = ["dataset", "of_rows", "table_dataset"]

_INSTALL = "pip install pyarrow"
_BATCH_ROWS = 1 << 16
"""The maximum number of rows of a batch, unless a smaller number is requested. pyarrow is slow with many small
batches.
"""


def dataset(table: Location, *, storage_options: Mapping[str, str] | None = None) -> pyarrow.dataset.Dataset:
    """Returns the rows of a table as a pyarrow dataset.

    The dataset always has the rows of the same version: the newest one when it is created, or the version of the
    `DeltaTable`. It can be read any number of times, but each of its scanners only once. Files and pages that cannot
    contain rows which a filter selects are not read. The order of the rows is not defined.

    pyarrow does not know the files of the dataset, so `get_fragments`, `sort_by`, `join` and unions raise an error.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        storage_options: the options of the store, for a path or URL.

    Raises:
        ExtraRequiredError: pyarrow is not installed.
        InvalidArgumentError: `storage_options` were passed with a `DeltaTable`, which has its own.
        NotATableError: there is no table.
    """
    required("pyarrow.dataset", "deltalog.pyarrow", _INSTALL)
    return of_rows(Rows.of(table, storage_options))


def of_rows(rows: Rows, condition: str | None = None) -> pyarrow.dataset.Dataset:
    """Returns a dataset of the rows for which the SQL condition is true."""
    found: pyarrow.dataset.Dataset = table_dataset()(rows, condition, None)
    return found


class _Scan(NamedTuple):
    """The part of a pyarrow scan that deltalog's scan carries out."""

    columns: list[str]
    condition: str | None
    is_whole: bool
    """Whether the condition covers the whole filter."""


@functools.cache
def table_dataset() -> Any:
    """Returns the class of datasets. It is defined inside this function because its base class is pyarrow's, which may
    not be installed.
    """
    import pyarrow
    import pyarrow.dataset
    import pyarrow.fs

    def without_files(schema: pyarrow.Schema) -> pyarrow.dataset.Dataset:
        """Returns a pyarrow dataset that cannot be read. Its file path is a message, which pyarrow's error shows."""
        form = pyarrow.dataset.ParquetFileFormat()
        place = pyarrow.fs.LocalFileSystem()
        path = "a dataset of deltalog can only be read by its own methods: call to_table(), or scanner()"
        return pyarrow.dataset.FileSystemDataset([form.make_fragment(path, place)], schema, form, place)

    class TableDataset(pyarrow.dataset.UnionDataset):  # type: ignore[misc]
        """The rows of a table at one version.

        pyarrow has no abstract dataset class, so this is a union dataset. Its only child raises an error if pyarrow
        reads it directly.
        """

        def __init__(self, rows: Rows, condition: str | None, selected: Any) -> None:
            schema = pyarrow.schema(rows.empty(view_types=False))
            super().__init__(schema, [without_files(schema)])
            self._rows = rows
            self._condition = condition
            self._selected = selected

        def __reduce__(self) -> Any:
            raise TypeError("a dataset of deltalog cannot be pickled: pickle DeltaTable.scan_tasks()")

        def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns a scanner, which can be read once. The first batch is read at once, so that an error at the
            beginning is raised as deltalog's own. Errors in later batches are raised as pyarrow's.
            """
            return self._scanner(columns, filter, None, **options)

        def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns the rows in memory."""
            return self.scanner(columns, filter, **options).to_table()

        def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns an iterator over the rows."""
            return self.scanner(columns, filter, **options).to_batches()

        def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns the first rows that the scan finds, and ends the scan."""
            return self._scanner(columns, filter, num_rows, **options).head(num_rows)

        def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Raises an error, because the order of the rows is not defined, so they have no numbers."""
            raise _refused("take")

        def count_rows(self, filter: Any = None, **options: Any) -> int:  # noqa: A002
            """Returns the number of rows, from the log if possible."""
            selection = self._both(filter)
            scan = self._scan([], selection)
            if scan.is_whole:
                return self._rows.snapshot.count(scan.condition)
            count: int = self.scanner([], filter, **options).count_rows()
            return count

        def filter(self, expression: Any) -> Any:
            """Returns a dataset of the rows for which the expression is true."""
            return TableDataset(self._rows, self._condition, self._both(expression))

        @property
        def partition_expression(self) -> Any:
            return pyarrow.dataset.scalar(True)

        @property
        def children(self) -> Any:
            raise _refused("children")

        def get_fragments(self, filter: Any = None) -> Any:  # noqa: A002
            raise _refused("get_fragments")

        def replace_schema(self, schema: Any) -> Any:
            raise _refused("replace_schema")

        def sort_by(self, sorting: Any, **options: Any) -> Any:
            raise _refused("sort_by")

        def join(self, *arguments: Any, **options: Any) -> Any:
            raise _refused("join")

        def join_asof(self, *arguments: Any, **options: Any) -> Any:
            raise _refused("join_asof")

        def _scanner(
            self,
            columns: Any,
            expression: Any,
            limit: int | None,
            **options: Any,
        ) -> Any:
            selection = self._both(expression)
            scan = self._scan(columns, selection)
            return pyarrow.dataset.Scanner.from_batches(
                self._stream(
                    scan,
                    limit=limit if scan.is_whole else None,
                    batch_rows=max(1, min(options.get("batch_size", _BATCH_ROWS), _BATCH_ROWS)),
                    threads=None if options.get("use_threads", True) else 1,
                ),
                columns=scan.columns if columns is None else columns,
                filter=None if scan.is_whole else selection,
                **options,
            )

        def _both(self, expression: Any) -> Any:
            if expression is not None and not isinstance(expression, pyarrow.dataset.Expression):
                raise wrong_argument("filter", expression, "a pyarrow.dataset.Expression, or None")
            if expression is None or self._selected is None:
                return self._selected if expression is None else expression
            return self._selected & expression

        def _scan(self, columns: Any, selection: Any) -> _Scan:
            """Returns which columns deltalog's scan reads, and which parts of the filter it evaluates."""
            known = self.schema.names
            needed = self._needed(columns)
            condition, is_whole = None, selection is None
            if selection is not None:
                try:
                    whole = tree(selection)
                except NotTranslated:
                    needed |= set(known)
                else:
                    condition, others = translated(
                        conjuncts(whole), lambda node: sql(node, self.schema), self._rows
                    )
                    is_whole = not others
                    needed |= set() if is_whole else fields(whole)
            if not needed <= set(known):
                needed = set(known)  # The error of pyarrow for an unknown column lists these columns.
            whole_condition = both(self._condition, condition)
            return _Scan([name for name in known if name in needed], whole_condition, is_whole)

        def _needed(self, columns: Any) -> set[str]:
            """Returns the columns that a projection needs. A projection is a list of names, or a dictionary of
            expressions.
            """
            if columns is None:
                return set(self.schema.names)
            if not isinstance(columns, Mapping):
                return set(columns)
            try:
                return {name for expression in columns.values() for name in fields(tree(expression))}
            except NotTranslated:
                return set(self.schema.names)

        def _stream(self, scan: _Scan, **options: Any) -> Any:
            """Returns the rows as a stream that pyarrow reads without running Python. pyarrow reads ahead in threads of
            its own. If one of them ran Python when the interpreter ends, the process would wait for it forever.
            """
            found = self._rows.read(scan.columns, scan.condition, view_types=False, **options)
            return pyarrow.RecordBatchReader.from_stream(found)

    return TableDataset


def _refused(method: str) -> UnsupportedFeatureError:
    refused = UnsupportedFeatureError(f"a dataset of deltalog has no {method}")
    hinted(
        refused, "read the rows by to_table(), to_batches() or scanner(), or call scan_tasks() of the table"
    )
    return refused
