"""The methods of `DeltaTable` that read files and rows, and counts and bounds from the log."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deltalog import _internal
from deltalog.arguments import (
    ChangeRange,
    Names,
    columns_argument,
    count_argument,
    limit_argument,
    names_argument,
    timestamp_argument,
    version_argument,
    whole_argument,
)
from deltalog.checked import checks_arguments
from deltalog.errors import UnsupportedFeatureError, hinted, wrong_argument
from deltalog.filters import Filter
from deltalog.table.handle import TableHandle
from deltalog.table.tasks import ScanSize, ScanTask, tasks_of

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["TableRows"]


@checks_arguments
class TableRows(TableHandle):
    """The methods of `DeltaTable` that read its files and rows."""

    def partitions(
        self,
        predicate: Filter | None = None,
        *,
        partition_filters: Filter | None = None,
        file_pruning_predicate: Filter | None = None,
    ) -> list[dict[str, str | None]]:
        """Returns the partitions that have files, one dictionary per partition, in the order of their values.

        Values are strings, written as in the log, such as `2024-01-31` or `true`; NULL is None. If the table has no
        partition columns, the list is empty. With a `predicate`, only partitions with a file that may contain a
        matching row are returned. `partition_filters` and `file_pruning_predicate` are `deltalake`'s names for this
        argument; if several are given, all of them must be met.
        """
        snapshot = self._rows
        columns = snapshot.partition_columns
        found = snapshot.partitions(self._all_of(predicate, partition_filters, file_pruning_predicate))
        return [dict(zip(columns, values, strict=True)) for values in found]

    def files(self, predicate: Filter | None = None, columns: Names | None = None) -> _internal.ArrowStream:
        """Returns the live data files as an Arrow stream with one row per file.

        Only the requested columns are decoded. They are returned in the given order.

        Columns: `path` (decoded, relative to the table), `size` (bytes), `modification_time`,
        `partition_values` (a typed struct), `num_records` (the rows of the data file, including those that its deletion
        vector deletes), `stats` (a typed struct of `numRecords, tightBounds, minValues, maxValues, nullCount`),
        `deletion_vector` (a struct of `storage_type, path_or_inline_dv, offset, size_in_bytes, cardinality`),
        `base_row_id` and `default_row_commit_version` (of row tracking).

        With a `predicate` (SQL, such as `"month = 7 AND delay > 60"`), files whose partition values or statistics show
        that they cannot contain a matching row are left out.
        """
        return self._rows.files(columns_argument(columns), self._filter(predicate))

    def file_uris(
        self,
        predicate: Filter | None = None,
        *,
        partition_filters: Filter | None = None,
        file_pruning_predicate: Filter | None = None,
    ) -> list[str]:
        """Returns the URLs of the live data files; with a `predicate`, only of files that may contain a matching row.

        `partition_filters` and `file_pruning_predicate` are `deltalake`'s names for this argument; if several are
        given, all of them must be met.
        """
        return self._rows.file_uris(self._all_of(predicate, partition_filters, file_pruning_predicate))

    def _all_of(
        self,
        predicate: Filter | None,
        partition_filters: Filter | None,
        file_pruning_predicate: Filter | None,
    ) -> str | None:
        """Returns one condition that is true if all of the filters are true."""
        texts = [
            self._filter(predicate),
            self._filter(partition_filters, "partition_filters"),
            self._filter(file_pruning_predicate, "file_pruning_predicate"),
        ]
        given = [text for text in texts if text is not None]
        return given[0] if len(given) == 1 else " AND ".join(f"({text})" for text in given) or None

    def to_arrow(
        self,
        columns: Names | None = None,
        predicate: Filter | None = None,
        *,
        row_ids: bool = False,
        view_types: bool = False,
        limit: int | None = None,
        ordered: bool = False,
        batch_rows: int | None = None,
        threads: int | None = None,
    ) -> _internal.ArrowStream:
        """Returns the rows as an Arrow stream: `pyarrow.table(table.to_arrow())`, `polars.DataFrame(table.to_arrow())`.

        Columns are returned in the given order. An empty list of columns gives a stream of row counts. With a
        `predicate`, only rows for which it is true are returned; files, row groups and pages that cannot contain such a
        row are not read. The predicate is written in Spark's SQL: times without a zone are in UTC, and a backslash in a
        string is doubled. Arithmetic, casts, CASE, and functions of numbers, strings, dates and times have the types
        and results of Spark in ANSI mode, so an overflow or a division by zero is an error. Tuples such as `[("month",
        "=", 7)]` are accepted as well.

        With `row_ids`, the rows also have the columns `_row_id` and `_row_commit_version`. A row keeps its id when it
        is updated or moved to another file; its commit version is the version of the last change to it. Only tables
        with row tracking have these columns. The predicate may use them, too.

        With `view_types`, strings and bytes are Arrow's `string_view` and `binary_view`, which are not copied.
        This is faster for Polars, DuckDB and other libraries that support these types. (Many pyarrow functions do
        not support them yet.)

        The rows of a file are returned in their order. Files are returned in any order, because several are read at
        once. (If there are only a few small files, they are read in the order of the list.) With `ordered`, they are
        returned in the order of `files()`, so each call at the same version of this object returns the rows in the same
        order; this may take longer.

        `limit` is the maximum number of rows; the scan ends when it has returned them. With `ordered` these are the
        first rows, otherwise they can be any rows.

        A batch has at most `batch_rows` rows, by default 8,192, and fewer if the rows are wide. `threads` is the
        maximum number of threads that read, by default one for each processor, and more for a remote store. With 1,
        only the thread that consumes the stream reads.

        The first batch is read by this call, so that most failures are raised here as a `DeltaError`. The library that
        consumes the stream raises a later failure as its own exception, with the same message: pyarrow raises an
        `OSError` for a missing file, and a `ValueError` for a damaged file.

        Raises:
            InvalidArgumentError: a column does not exist, the predicate does not fit the schema, or `row_ids` was
                passed and the table has no row tracking.
            MissingFileError: a data file is missing.
            CorruptDataError: a data file cannot be read.
        """
        condition = self._filter(predicate)
        rows, is_pinned = self._rows, self._opened.is_pinned
        return rows.scan(
            columns_argument(columns),
            condition,
            row_ids,
            view_types,
            is_pinned,
            limit_argument(limit),
            ordered,
            count_argument(batch_rows, "batch_rows"),
            count_argument(threads, "threads"),
        )

    def scan_tasks(
        self,
        count: int,
        columns: Names | None = None,
        predicate: Filter | None = None,
        *,
        ordered: bool = False,
    ) -> list[ScanTask]:
        """Returns the rows as tasks for other processes, such as the workers of `multiprocessing`, Dask or Ray.

            tasks = table.scan_tasks(8, columns=["km"], predicate="city = 'Oslo'")
            with ProcessPoolExecutor() as pool:
                counts = pool.map(count_rows, tasks)  # Each calls `task.read()`.

        Together, the tasks read exactly the rows that `to_arrow` returns. They have about the same size. There are
        fewer than `count` tasks if there are fewer files, and none if no file can contain a matching row.

        Args:
            count: the maximum number of tasks.
            columns: as in `to_arrow`.
            predicate: as in `to_arrow`.
            ordered: whether the rows of the tasks, one task after another, are in the order of an ordered `to_arrow`.

        Raises:
            InvalidArgumentError: there is no such column, or the predicate does not fit the schema.
        """
        number = whole_argument(count, "count", "a whole number from 1", 1)
        condition = self._filter(predicate)
        return tasks_of(self._rows, number, columns_argument(columns), condition, ordered=ordered)

    def scan(self, columns: Names | None = None, predicate: Filter | None = None) -> _internal.ArrowStream:
        """Returns the rows as an Arrow stream; `deltalake`'s name for `to_arrow`."""
        return self.to_arrow(columns, predicate)

    def to_pyarrow_table(
        self,
        partitions: Filter | None = None,
        columns: Names | None = None,
        filesystem: object = None,
        filters: Filter | None = None,
    ) -> "pyarrow.Table":
        """Returns the rows as a `pyarrow.Table`. Needs pyarrow.

        Args:
            partitions: another filter like `filters`; rows must meet both. In `deltalake`, it is for filters on
                partition columns.
            columns: the columns to read, in this order; None for all columns.
            filesystem: must be None, because deltalog reads files itself.
            filters: the rows to read, as SQL text or tuples such as `[("month", "=", 7)]`; a
                `pyarrow.dataset.Expression` is refused.

        Raises:
            UnsupportedFeatureError: a `filesystem` or an `Expression` was given.
            DeltaError: as `to_arrow`. For data that is read after the first batch, the exception is pyarrow's.
        """
        import pyarrow

        if filesystem is not None:
            refused = UnsupportedFeatureError("a pyarrow filesystem is not supported")
            raise hinted(refused, "leave it out: deltalog reads the files of a table by itself")
        both = (self._filter(partitions, "partitions"), self._filter(filters, "filters"))
        conditions = [text for text in both if text is not None]
        predicate = " AND ".join(f"({text})" for text in conditions) or None
        rows = self.to_arrow(columns, predicate)
        try:
            return pyarrow.table(rows)
        except (OSError, ValueError):
            # If a signal has interrupted the stream, let Python handle the signal first.
            time.sleep(0)
            raise

    def to_pandas(
        self,
        partitions: Filter | None = None,
        columns: Names | None = None,
        filesystem: object = None,
        filters: Filter | None = None,
        types_mapper: "Callable[[pyarrow.DataType], Any] | None" = None,
    ) -> "pandas.DataFrame":
        """Returns the rows as a pandas frame. Needs pandas and pyarrow.

        `types_mapper` is passed to `pyarrow.Table.to_pandas`; the other arguments are the same as in
        `to_pyarrow_table`.
        """
        if types_mapper is not None and not callable(types_mapper):
            raise wrong_argument("types_mapper", types_mapper, "a function, or None")
        rows = self.to_pyarrow_table(partitions, columns, filesystem, filters)
        frame: pandas.DataFrame = rows.to_pandas(types_mapper=types_mapper)
        return frame

    def count(self, predicate: Filter | None = None) -> int:
        """Returns the number of rows; with a `predicate`, the number of rows for which it is true. The count is exact.

        The count comes from the log: the number of rows of the files, minus their deleted rows. Only files whose
        statistics have no count are opened, to read their footers. A predicate on partition columns is answered in the
        same way. For a predicate on other columns, these columns are read from the files that may match.
        """
        return self._rows.count(self._filter(predicate))

    def count_by_partition(self, predicate: Filter | None = None) -> _internal.ArrowStream:
        """Returns the number of rows of each partition, as an Arrow stream of the partition columns and `count`.

        Partitions are in the order of their values, null first; partitions without rows are left out. A table without
        partition columns has one row. The counts are exact, and come from the log as in `count`.
        """
        return self._rows.count_by_partition(self._filter(predicate))

    def min_max(self, column: str, predicate: Filter | None = None) -> tuple[Any, Any] | None:
        """Returns the minimum and the maximum of a column, or None if the log does not have them exactly.

        A field of a struct is given as `struct.field`. The log has exact bounds for partition columns, and for
        integers, decimals, dates and booleans if the statistics of all files are complete and exact. It does not have
        them for strings and timestamps, whose bounds are truncated, or for floating-point numbers, whose bounds ignore
        NaN. The result is None, too, if the `predicate` uses a column that is not a partition column. `(None, None)`
        means that the column has no value except NULL. Rows are never read.

        Raises:
            InvalidArgumentError: there is no such column.
        """
        return self._rows.min_max(column, self._filter(predicate))

    def bounds(self, columns: Names, predicate: Filter | None = None) -> dict[str, tuple[Any, Any] | None]:
        """Returns the minimum and the maximum of each of several columns, as `min_max` does, reading the log only once.

        Raises:
            InvalidArgumentError: there is no such column.
        """
        names = names_argument(columns, "columns")
        return dict(zip(names, self._rows.bounds(names, self._filter(predicate)), strict=True))

    def scan_size(self, predicate: Filter | None = None) -> ScanSize:
        """Returns how much a scan has to read: the number and size of the files that may contain rows for which the
        predicate is true.

        Only the log is read.

        Raises:
            InvalidArgumentError: the predicate does not fit the schema.
        """
        return ScanSize(*self._rows.scan_size(self._filter(predicate)))

    def load_cdf(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: datetime | str | None = None,
        ending_timestamp: datetime | str | None = None,
        columns: Names | None = None,
        predicate: Filter | None = None,
        allow_out_of_range: bool = False,
    ) -> _internal.ArrowStream:
        """Returns the change data feed as an Arrow stream: inserted, updated and deleted rows, in order of versions.

        Rows have the table's columns as of the last version of the range, then `_change_type` (`insert`,
        `delete`, `update_preimage`, `update_postimage`), `_commit_version` and `_commit_timestamp`.

        Args:
            starting_version: the first version; 0 if neither this nor `starting_timestamp` is given.
            ending_version: the last version. By default, or if there is no such version yet, the newest version of the
                table, even if an older version is open.
            starting_timestamp: begins with the first version committed at this time or later; a `datetime` (without a
                zone: UTC), or ISO 8601 text.
            ending_timestamp: ends with the last version committed at this time or earlier.
            columns: as in `to_arrow`; the list can include the columns of the feed.
            predicate: as in `to_arrow`; it may use the columns of the feed. Files are not opened if their partition
                values, statistics, version, time or `_change_type` show that they cannot contain a matching row.
            allow_out_of_range: return no rows, instead of raising, for a range that begins after the newest
                version or ends before it begins.

        Raises:
            VersionNotFoundError: a commit in the range was cleaned up, the feed was off (`delta.enableChangeDataFeed`)
                at one of the versions, or the range begins after the newest version; the message lists the readable
                versions.
            SchemaMismatchError: the rows of a version do not fit the schema of the last version, because a
                column was dropped, renamed or changed.
            InvalidArgumentError: the range ends before it begins, or a column or the predicate does not fit.
            MissingFileError: a data file is missing, for example after a vacuum.
        """
        return self._rows.changes(
            ChangeRange(
                version_argument(starting_version, "starting_version"),
                version_argument(ending_version, "ending_version"),
                timestamp_argument(starting_timestamp, "starting_timestamp", round_up=True),
                timestamp_argument(ending_timestamp, "ending_timestamp"),
            ),
            columns_argument(columns),
            self._filter(predicate),
            allow_out_of_range,
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)
