"""Tables as datasets of pyarrow: `deltalog.pyarrow.dataset(table)`.

What reads a dataset names columns and passes its filter, and the scan evaluates what it can of it. So do DuckDB 1,
`polars.scan_pyarrow_dataset`, and whatever else takes a `pyarrow.dataset.Dataset`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.conditions import Location, NotTranslated, Rows, translated
from deltalog.errors import UnsupportedFeatureError, hinted, wrong_argument
from deltalog.extras import required
from deltalog.pyarrow_conditions import conjuncts, fields, sql, tree

if TYPE_CHECKING:
    import pyarrow.dataset

__all__ = ["dataset"]

_INSTALL = "pip install pyarrow"
_BATCH_ROWS = 1 << 16
"""The maximum number of rows of a batch, unless a smaller number is requested. pyarrow is slow with many small ones."""


def dataset(table: Location, *, storage_options: Mapping[str, str] | None = None) -> pyarrow.dataset.Dataset:
    """Returns the rows of a table as a dataset of pyarrow.

    It keeps the version that is the newest now, or the version that a `DeltaTable` shows, and can be read any number of
    times; a scanner of it can be read once. Files and pages that cannot have a row of a filter are not read. Rows come
    in any order.

    pyarrow does not know the files: it is an error to ask for fragments, to `sort_by` or to `join` the dataset, and to
    make a union of it.

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
    """Returns the rows for which the condition, in SQL, is true as a dataset."""
    found: pyarrow.dataset.Dataset = _table_dataset()(rows, condition, None)
    return found


class _Scan(NamedTuple):
    """What a scan of the core returns of a scan of pyarrow."""

    columns: list[str]
    condition: str | None
    is_whole: bool
    """Whether the condition is the whole filter."""


@functools.cache
def _table_dataset() -> Any:
    """Returns the class of datasets, which needs pyarrow to be defined."""
    import pyarrow
    import pyarrow.dataset
    import pyarrow.fs

    def without_files(schema: pyarrow.Schema) -> pyarrow.dataset.Dataset:
        """Returns a dataset that fails when pyarrow reads it, with a message instead of a path."""
        form = pyarrow.dataset.ParquetFileFormat()
        place = pyarrow.fs.LocalFileSystem()
        path = "a dataset of deltalog can only be read by its own methods: call to_table(), or scanner()"
        return pyarrow.dataset.FileSystemDataset([form.make_fragment(path, place)], schema, form, place)

    class TableDataset(pyarrow.dataset.UnionDataset):  # type: ignore[misc]
        """The rows of a table at one version.

        pyarrow has no class of datasets without something of its own. The one child of the union fails when it is read.
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
            """Returns a scanner, which can be read once. It reads nothing before."""
            return self._scanner(columns, filter, None, **options)

        def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns the rows in memory."""
            return self.scanner(columns, filter, **options).to_table()

        def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns an iterator over the rows."""
            return self.scanner(columns, filter, **options).to_batches()

        def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns some rows, after which the scan ends."""
            return self._scanner(columns, filter, num_rows, **options).head(num_rows)

        def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Refused: rows come in any order, and have no numbers."""
            raise _refused("take")

        def count_rows(self, filter: Any = None, **options: Any) -> int:  # noqa: A002
            """Returns the number of rows, by the log if it has it."""
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
                self._batches(
                    scan,
                    limit=limit if scan.is_whole else None,
                    batch_rows=max(1, min(options.get("batch_size", _BATCH_ROWS), _BATCH_ROWS)),
                    threads=None if options.get("use_threads", True) else 1,
                ),
                schema=pyarrow.schema([self.schema.field(name) for name in scan.columns]),
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
            """Returns which columns the scan of the core reads, and what it evaluates of the filter."""
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
            both = [text for text in (self._condition, condition) if text is not None]
            joined = " AND ".join(f"({text})" for text in both) or None
            return _Scan([name for name in known if name in needed], joined, is_whole)

        def _needed(self, columns: Any) -> set[str]:
            """Returns the columns that a projection needs: names, or expressions by their names."""
            if columns is None:
                return set(self.schema.names)
            if not isinstance(columns, Mapping):
                return set(columns)
            try:
                return {name for expression in columns.values() for name in fields(tree(expression))}
            except NotTranslated:
                return set(self.schema.names)

        def _batches(self, scan: _Scan, **options: Any) -> Iterator[Any]:
            for batch in self._rows.read(scan.columns, scan.condition, view_types=False, **options):
                yield pyarrow.record_batch(batch)

    return TableDataset


def _refused(method: str) -> UnsupportedFeatureError:
    refused = UnsupportedFeatureError(f"a dataset of deltalog has no {method}")
    hinted(
        refused, "read the rows by to_table(), to_batches() or scanner(), or call scan_tasks() of the table"
    )
    return refused
