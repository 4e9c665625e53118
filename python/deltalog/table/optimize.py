"""OPTIMIZE and REORG: rewrite files as fewer files, in another order, or without deleted rows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from deltalog import _internal
from deltalog.arguments import names_argument, size_argument, span_argument, whole_argument
from deltalog.checked import checks_arguments
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument
from deltalog.filters import Filter, filter_argument
from deltalog.schema import Schema
from deltalog.writer_properties import WriterProperties, file_format_argument

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = ["TableOptimizer"]


@checks_arguments
class TableOptimizer:
    """Operations that rewrite the files of a table in a better layout; see `DeltaTable.optimize`.

    Each operation first reads the log and acts on the newest version; a table that is pinned to a version refuses it.
    Rows are moved to other files and never changed: the change data feed shows nothing, and with row tracking, rows
    keep their ids. Appends, and statements that delete rows by deletion vectors, may run at the same time: the rows
    that they delete are deleted in the new files as well. If `compact` or `purge` commits first, such a statement finds
    its rows in the new files; if `z_order` or `cluster` commits first, it fails with a conflict. Files that other
    writers have removed are skipped, and all other files are still rewritten (`numBinsGivenUp`).
    """

    def __init__(self, table: "DeltaTable") -> None:
        self._table = table

    def compact(
        self,
        partition_filters: Filter | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        min_commit_interval: int | timedelta | None = None,
        commit_properties: CommitProperties | None = None,
        check_rows: bool = False,
        dry_run: bool = False,
        writer_properties: WriterProperties | None = None,
    ) -> dict[str, Any]:
        """Combines small files, and files with many deleted rows, into fewer, larger files in each partition.

        In a table with clustering columns, does what `cluster` does.

        Files are combined in the order in which they were added. Files that have at least three quarters of the target
        size are not rewritten, unless 5 % of their rows or more are deleted by deletion vectors. A second run does
        nothing, unless the new files became much smaller than the old ones. Each commit replaces about 16 GiB of files;
        if something fails later, earlier commits stand.

        Args:
            partition_filters: selects partitions, by SQL on partition columns such as `"day = '2026-11-24'"`, or by
                tuples as in `files()`; None for all partitions. Times without a zone are in UTC.
            target_size: the size of new files in bytes; by default the table's `delta.targetFileSize`, or 128 MiB.
            max_concurrent_tasks: accepted for compatibility with `deltalake`; has no effect.
            max_spill_size: likewise.
            max_temp_directory_size: likewise.
            min_commit_interval: the minimum time between two commits, in seconds or as a timedelta.
            commit_properties: what to record with the commits. Its `app_transactions` must be empty.
            check_rows: whether the new files are read again, and their rows compared with the old ones by a hash,
                before they are committed.
            dry_run: whether to write nothing. The metrics then describe what would be done, with estimated sizes.
            writer_properties: how the new files are encoded, as for `write_deltalake`.

        Returns:
            The metrics under the JVM connector's names, such as `numFilesAdded`, `numFilesRemoved`, `filesAdded` (with
            `min`, `max`, `avg`, `totalFiles` and `totalSize`), `partitionsOptimized` and `totalConsideredFiles`. Two
            more metrics concern other writers that commit in the meantime: `numRowsCarriedOver`, the rows that they
            have deleted and that were deleted in the new files, too, and `numBinsGivenUp`, the new files that were
            discarded because another writer had replaced the old ones.

        Raises:
            InvalidArgumentError: the filter uses columns that are not partition columns, or an argument is invalid.
            CommitConflictError: another writer has changed the protocol or the metadata of the table.
        """
        _check_limits(max_concurrent_tasks, max_spill_size, max_temp_directory_size)
        return self._run(
            partition_filters,
            target_size,
            min_commit_interval,
            commit_properties,
            check_rows=check_rows,
            dry_run=dry_run,
            writer_properties=writer_properties,
        )

    __call__ = compact

    def cluster(
        self,
        *,
        full: bool = False,
        target_size: int | None = None,
        cube_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        commit_properties: CommitProperties | None = None,
        check_rows: bool = False,
        dry_run: bool = False,
        writer_properties: WriterProperties | None = None,
    ) -> dict[str, Any]:
        """Clusters the rows of new files by the table's clustering columns, so that filters on them skip files.

        The rows of the new files are sorted together along a Hilbert curve. The files with the result form a group,
        called a cube. The smallest existing cubes are sorted together with the new files, as long as their total size
        is at most twice the size of the new files, or they fill at most eight files. So a run writes at most three
        times the amount that was added, or a few files; a second run does nothing. The more cubes there are, the fewer
        files a filter skips: `full` merges all cubes into one. deltalog and the JVM connector ("liquid clustering") can
        continue each other's clustering of a table. Files in which at least 5 % of the rows are deleted are rewritten
        without these rows.

        After a change of the clustering columns, files that were clustered by the old columns are only rewritten with
        `full`. If the table no longer has clustering columns, `compact` treats them like all other files.

        Each commit writes at least one cube, and about 16 GiB of files if cubes are smaller than that. Rows that do not
        fit into about 256 MiB of memory are written to a temporary file, in the directory that the environment variable
        TMPDIR names.

        Args:
            full: whether all files are clustered by the current columns (`OPTIMIZE ... FULL`). Cubes that already have
                two thirds of `cube_size`, or a single cube, are not rewritten.
            target_size: the size of new files in bytes, estimated from the size of the old ones; as for `compact`.
            cube_size: the maximum number of bytes that are sorted together; by default 150 GiB, as in the JVM
                connector, which sorts all smaller cubes again in each run. A temporary file may need several times this
                space.
            min_commit_interval: the minimum time between two commits, in seconds or as a timedelta.
            commit_properties: what to record with the commits. Its `app_transactions` must be empty.
            check_rows: whether the new files are read again, and their rows compared with the old ones by a hash,
                before they are committed.
            dry_run: whether to write nothing. The metrics then describe what would be done, with estimated sizes.
            writer_properties: how the new files are encoded, as for `write_deltalake`.

        Returns:
            The metrics, as for `compact`, with `clusteringStats`, which describe the plan: the files in cubes
            (`inputZCubeFiles`) and the others (`inputOtherFiles`), the number of cubes (`inputNumZCubes`), the files
            that are clustered (`mergedFiles`), and the number of cubes that they become (`numOutputZCubes`).

        Raises:
            InvalidArgumentError: the table has no clustering columns, or an argument is invalid.
            CommitConflictError: another writer has changed the protocol, the metadata or the clustering columns.
        """
        cube = size_argument(cube_size, "cube_size")
        return self._run(
            None,
            target_size,
            min_commit_interval,
            commit_properties,
            check_rows=check_rows,
            dry_run=dry_run,
            writer_properties=writer_properties,
            cluster=(full, cube),
        )

    def purge(
        self,
        partition_filters: Filter | None = None,
        target_size: int | None = None,
        *,
        min_commit_interval: int | timedelta | None = None,
        commit_properties: CommitProperties | None = None,
        check_rows: bool = False,
        dry_run: bool = False,
        writer_properties: WriterProperties | None = None,
    ) -> dict[str, Any]:
        """Rewrites files that have deleted rows or dropped columns: `REORG ... APPLY (PURGE)`.

        Files with deletion vectors are found through the log. Files that were written before a column or field was
        dropped still contain it; the footers of all other files are read to find them. A second run reads footers and
        rewrites nothing. The deleted rows and columns stay in the store until VACUUM deletes the old files.

        Arguments, results and errors are the same as in `compact`. If a file is not Parquet, the method raises
        `CorruptDataError`.
        """
        return self._run(
            partition_filters,
            target_size,
            min_commit_interval,
            commit_properties,
            check_rows=check_rows,
            dry_run=dry_run,
            writer_properties=writer_properties,
            purges=True,
        )

    def z_order(
        self,
        columns: Sequence[str] | str,
        partition_filters: Filter | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        curve: Literal["hilbert", "zorder"] = "hilbert",
        min_commit_interval: int | timedelta | None = None,
        commit_properties: CommitProperties | None = None,
        check_rows: bool = False,
        dry_run: bool = False,
        writer_properties: WriterProperties | None = None,
    ) -> dict[str, Any]:
        """Orders the rows of each partition by several columns at once, so that filters on each of these columns skip
        files.

        All files of the partitions are rewritten each time it is called. The rows are ordered along a curve through the
        ranks of the columns' values, so the distribution of values and the order of the columns do not matter. The more
        columns you pass, the fewer files a filter on one of them skips. Rows that do not fit into about 256 MiB of
        memory are written to a temporary file, in the directory that the environment variable TMPDIR names.

        Args:
            columns: the columns, or a single one. They must contain numbers, strings, dates or timestamps, and may be
                fields of structs (`struct.field`).
            partition_filters: which partitions, as for `compact`.
            target_size: the size of new files in bytes, estimated from the size of the old ones; as for `compact`.
            max_concurrent_tasks: accepted for compatibility with `deltalake`; has no effect.
            max_spill_size: likewise.
            max_temp_directory_size: likewise.
            curve: `hilbert`, or `zorder`, the curve of other implementations, with which filters skip fewer files.
            min_commit_interval: the minimum time between two commits, in seconds or as a timedelta.
            commit_properties: what to record with the commits. Its `app_transactions` must be empty.
            check_rows: whether the new files are read again, and their rows compared with the old ones by a hash,
                before they are committed.
            dry_run: whether to write nothing. The metrics then describe what would be done, with estimated sizes.
            writer_properties: how the new files are encoded, as for `write_deltalake`.

        Returns:
            The metrics, as for `compact`, with `zOrderStats`.

        Raises:
            InvalidArgumentError: a column does not exist, is a partition column or has no statistics; the table is
                clustered; the filter uses columns that are not partition columns; or an argument is invalid.
            CommitConflictError: another writer has changed the protocol or the metadata of the table.
        """
        _check_limits(max_concurrent_tasks, max_spill_size, max_temp_directory_size)
        names = names_argument(columns, "columns", one=True)
        if not names:
            raise wrong_argument("columns", columns, "at least one name")
        return self._run(
            partition_filters,
            target_size,
            min_commit_interval,
            commit_properties,
            check_rows=check_rows,
            dry_run=dry_run,
            writer_properties=writer_properties,
            z_order=(names, curve),
        )

    def _run(
        self,
        partition_filters: Filter | None,
        target_size: int | None,
        min_commit_interval: int | timedelta | None,
        commit_properties: CommitProperties | None,
        *,
        check_rows: bool,
        dry_run: bool,
        writer_properties: WriterProperties | None,
        purges: bool = False,
        z_order: tuple[list[str], str] | None = None,
        cluster: tuple[bool, int | None] | None = None,
    ) -> dict[str, Any]:
        size = size_argument(target_size, "target_size")
        interval = span_argument(min_commit_interval, "min_commit_interval")
        commit, encoding = commit_arguments(commit_properties), file_format_argument(writer_properties)
        newest = self._table._newest_to_change()
        if cluster is not None and not newest.clustering_columns():
            refused = InvalidArgumentError(f"the table {newest.uri} has no clustering columns")
            raise hinted(refused, "set them with alter.cluster_by, or use compact")
        metrics, version = _internal.optimize(
            newest,
            filter_argument(partition_filters, Schema._of(newest.schema_json), "partition_filters"),
            size,
            interval,
            purges,
            dry_run,
            commit,
            z_order,
            cluster,
            check_rows,
            encoding,
        )
        self._table._has_committed(version)
        return metrics


def _check_limits(
    max_concurrent_tasks: int | None, max_spill_size: int | None, max_temp_directory_size: int | None
) -> None:
    """Checks limits that have no effect, because memory is limited without them."""
    if max_concurrent_tasks is not None:
        whole_argument(max_concurrent_tasks, "max_concurrent_tasks", "a whole number from 1", 1)
    size_argument(max_spill_size, "max_spill_size")
    size_argument(max_temp_directory_size, "max_temp_directory_size")
