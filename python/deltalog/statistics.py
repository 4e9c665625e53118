"""Computes statistics for files that have no statistics or poor ones."""

from typing import Any

from deltalog import _internal
from deltalog.checked import checks_arguments
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.handle import TableHandle

__all__ = ["TableStatistics"]


@checks_arguments
class TableStatistics(TableHandle):
    """Statistics, which let queries skip files."""

    def recompute_statistics(
        self,
        predicate: str | None = None,
        *,
        all_files: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, Any]:
        """Computes statistics for the files of the newest version that have no statistics or poor ones.

        Statistics are poor if they lack the number of rows or something of an indexed column
        (`delta.dataSkippingStatsColumns`, `delta.dataSkippingNumIndexedCols`), or if their bounds are wide although no
        row is deleted. They come from the footer of a file, and from its rows where the footer does not say enough. No
        data file is written, and readers of changes see nothing. Files that another writer changes in the meantime are
        left out. A table of very many files needs several commits; earlier commits are kept if something fails later.

        Statements remove files unread by statistics that deltalog has computed, not by statistics of other
        writers, and only the former show that doubles have no NaN. Statistics of another writer's file become
        deltalog's own if they come from its rows, or from the footer of a file that Spark or deltalog has written.

        Args:
            predicate: which partitions, as SQL on partition columns; all by default.
            all_files: whether statistics of all files are computed. Statistics of files with deletion vectors
                become exact, which takes reading their rows.
            dry_run: whether nothing is read and committed: `numFilesChosen` says how many files would be.
            commit_properties: what to record with the commits. Its `app_transactions` must be empty.

        Returns:
            The metrics: `numFilesConsidered`, `numFilesChosen`, `numUpdatedFiles`, `numFilesByFooter`,
            `numFilesByRows`, and `numFilesGivenUp`, which another writer has changed in the meantime.

        Raises:
            InvalidArgumentError: the predicate reads other than partition columns, or the table is pinned to a version.
            MissingFileError, CorruptDataError: a file cannot be read.
            CommitConflictError: another writer has changed the metadata or the protocol.
        """
        metrics, version = _internal.recompute_statistics(
            self._newest_to_change(), predicate, all_files, dry_run, commit_arguments(commit_properties)
        )
        self._has_committed(version)
        return metrics
