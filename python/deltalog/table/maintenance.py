"""Maintenance of a table: VACUUM, statistics, FSCK and manifests."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from deltalog import _internal
from deltalog.arguments import stream_argument
from deltalog.checked import checks_arguments
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument
from deltalog.table.handle import TableHandle
from deltalog.table.vacuum import VacuumArguments, VacuumPlan, retention_argument, versions_argument

__all__ = ["TableMaintenance", "generate"]

_MODE = "symlink_format_manifest"


def generate(snapshot: _internal.Snapshot, mode: str = _MODE) -> int:
    """Writes the manifests of the newest version. Returns this version."""
    if mode.lower() != _MODE:
        raise wrong_argument("mode", mode, f"{_MODE!r}, the only mode there is")
    version, _, _ = _internal.generate_manifests(snapshot)
    return version


@checks_arguments
class TableMaintenance(TableHandle):
    """Files that are no longer needed, files that are missing, statistics, and manifests for other engines."""

    def vacuum(
        self,
        retention_hours: float | timedelta | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *,
        full: bool = True,
        keep_versions: Sequence[int] | None = None,
        inventory: object | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> list[str]:
        """Deletes the files that the table no longer needs. By default, only returns which files would be deleted.

        A file is needed if it is part of the newest version, or was removed from the table within the retention. Other
        files are deleted if they were written before the retention began, so that files of writes in progress are kept.
        Older versions can then no longer be read. Files and directories that begin with `_` or `.` are never deleted,
        apart from `_change_data` and partitions, and neither are other tables in the table's directory.

        The table does not know its shallow clones. They need its files, perhaps including some that were removed from
        this table, and a VACUUM may break them.

        Args:
            retention_hours: how long files are kept after they were removed; without it the table's property
                `delta.deletedFileRetentionDuration`, or 7 days. It must be longer than the longest write and the
                longest query of an old version.
            dry_run: delete nothing.
            enforce_retention_duration: refuses a retention that is shorter than the table's.
            full: lists all files. Otherwise only files that were removed since the last VACUUM according to the log are
                found, and files that a failed write has left are not.
            keep_versions: versions whose files are kept, however old they are.
            inventory: finds the files in an inventory of the store instead of listing it: an Arrow stream with the
                columns `path` (full paths, not encoded), `length`, `isDir` and `modificationTime` (milliseconds since
                the epoch, or a timestamp).
            commit_properties: what to record with the commits `VACUUM START` and `VACUUM END`.

        Returns:
            The paths of the files that were found, relative to the table's root, in no particular order. `vacuum_plan`
            also has their sizes, and the reasons why they may be deleted.

        Raises:
            InvalidArgumentError: the retention is shorter than the table's, the inventory is of another place, or
                the table is pinned to a version.
            VersionNotFoundError: with `full=False`, the log does not reach back to the last VACUUM.
            UnsupportedFeatureError: the table cannot be written, a catalog manages it, or its retention is not a time
                span in weeks or smaller units.
            DeltaError: some files may have been deleted. Run VACUUM again.
        """
        plan = self.vacuum_plan(
            retention_hours,
            enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
            commit_properties=commit_properties,
        )
        paths = plan.paths()
        if not dry_run:
            plan.delete()
        return paths

    def vacuum_plan(
        self,
        retention_hours: float | timedelta | None = None,
        enforce_retention_duration: bool = True,
        *,
        full: bool = True,
        keep_versions: Sequence[int] | None = None,
        inventory: object | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> VacuumPlan:
        """Finds the files that the newest version of the table no longer needs, with sizes and reasons.

        Arguments and errors are the same as in `vacuum`. The plan can be inspected, and carried out with `delete()`.
        """
        if inventory is not None and not full:
            refused = InvalidArgumentError("an inventory stands for a listing of all files")
            raise hinted(refused, "pass full=True, or no inventory")
        versions = versions_argument(keep_versions)
        arguments = VacuumArguments(
            retention_argument(retention_hours),
            bool(enforce_retention_duration),
            not full,
            None if inventory is None else stream_argument(inventory, "inventory"),
            versions,
        )
        commit = commit_arguments(commit_properties)
        return VacuumPlan(self, _internal.plan_vacuum(self._newest_to_change(), arguments, commit))

    def recompute_statistics(
        self,
        predicate: str | None = None,
        *,
        all_files: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, Any]:
        """Computes statistics for files of the newest version that have none or poor ones.

        Statistics are poor if they lack the number of rows, or lack values for an indexed column
        (`delta.dataSkippingStatsColumns`, `delta.dataSkippingNumIndexedCols`), or if their bounds are wide although no
        row is deleted. New statistics come from the footer of a file, and from its rows if the footer is not enough. No
        data file is written, and readers of changes see nothing. Files that another writer changes in the meantime are
        left out. A table with very many files needs several commits; commits that were made are kept if something fails
        later.

        Statements remove files without reading them only by statistics that deltalog has computed, not by statistics of
        other writers, and only deltalog's show that doubles have no NaN. Statistics of another writer's file are
        replaced by deltalog's own if these come from its rows, or from the footer of a file that Spark or deltalog has
        written.

        Args:
            predicate: which partitions, as SQL on partition columns; all by default.
            all_files: whether statistics of all files are computed. Statistics of files with deletion vectors
                become exact, which takes reading their rows.
            dry_run: whether to read and commit nothing. `numFilesChosen` is then the number of files that would be
                read.
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

    def check(self, level: Literal["files", "footers", "rows"] = "footers") -> _internal.ArrowStream:
        """Checks whether the files of this version exist and match the log.

        Nothing is changed. A file counts as missing only if the store says so: a request that fails otherwise is an
        error.

        The columns of the result are

        - `path`: as in `files()`.
        - `problem`: `missing file`, `wrong size`, `damaged file`, `unsupported file` (an encrypted one, or one with
          a codec that this version does not know: it may be whole), `wrong row count` (another one than in the
          statistics), `missing vector`, `damaged vector` (checksum, number or positions of rows), `wrong
          statistics` (queries may overlook rows), or `unreferenced file` (no file and no tombstone of the newest
          version: older ones may need it; a VACUUM deletes it when it is old enough; change data files are not
          looked at).
        - `detail`: what was found.
        - `partition_values`: the texts of the log by column; NULL for an unreferenced file.
        - `size` and `modification_time`: as in the log; for an unreferenced file as in the store.
        - `num_rows`: the rows of the file that are not deleted, if the log has their number.

        Args:
            level: `files` looks for data files and files of deletion vectors, and at sizes; `footers` also reads the
                footers of data files, and deletion vectors; `rows` also reads all rows, and compares them with the
                statistics.

        Returns:
            An Arrow stream, one row per problem.

        Raises:
            CorruptLogError: an action of the log cannot be understood.
            UnsupportedFeatureError: a file is outside the table and `allowed_roots`.
            UnavailableError: the store did not answer.
        """
        return _internal.check_files(self._snapshot, level)

    def repair(
        self,
        dry_run: bool = False,
        *,
        remove_damaged: bool = False,
        drop_files_without_vectors: bool = False,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, Any]:
        """Removes files that no longer exist from the newest version, in one commit, together with their rows.

        Look at `check()` or a dry run first, and restore files if there are copies: otherwise their rows are lost. It
        cannot be known which rows these were, so a change data feed of this version cannot be read. Nothing is deleted
        in the store.

        Args:
            dry_run: whether nothing is committed.
            remove_damaged: whether files that exist but cannot be read as Parquet are removed as well. All footers and
                deletion vectors are then read.
            drop_files_without_vectors: whether files whose deletion vectors do not exist (with `remove_damaged` also:
                do not fit) are removed with all of their rows. Without their vectors, deleted rows would reappear.
            commit_properties: what to record with the commit. Its `app_transactions` must be empty.

        Returns:
            `dry_run` and `files_removed`, the paths, as `deltalake` returns them; `files`, one dictionary per file with
            `dataFilePath`, `dataFileMissing`, `dataFileDamaged`, `deletionVectorPath` and `deletionVectorFileMissing`;
            and the metrics of the commit: `numFilesScanned`, `numRemovedFiles`, `numRemovedBytes`, `numRemovedRows` (as
            far as the log has them), `numMissingFiles`, `numFilesWithoutVectors`. If all files are there, nothing is
            committed.

        Raises:
            InvalidArgumentError: the table is append-only, and files are missing; or it is pinned to a version.
            MissingFileError, CorruptDataError: deletion vectors are not there or do not fit, and their files are not
                to be dropped. A dry run says so too. Nothing was committed.
            CommitConflictError: another writer has removed one of the files.
        """
        metrics, files, version = _internal.repair(
            self._newest_to_change(),
            remove_damaged,
            drop_files_without_vectors,
            dry_run,
            commit_arguments(commit_properties),
        )
        self._has_committed(version)
        paths = [file["dataFilePath"] for file in files]
        return {"dry_run": dry_run, "files_removed": paths, "files": files, **metrics}

    def generate(self, mode: str = _MODE) -> int:
        """Writes manifests of the files of the newest version, for Presto, Athena and others that read Hive's format.

        They are in `_symlink_format_manifest/`, one for each partition that has files, with one full path per
        line; manifests of other partitions are deleted. With the table property
        `delta.compatibility.symlinkFormatManifest.enabled` each commit brings them up to date, and if that fails
        there is a warning in the log. A client other than deltalog and the JVM connector does not do so.

        Args:
            mode: `symlink_format_manifest`, in upper or lower case.

        Returns:
            The version that the manifests show.

        Raises:
            InvalidArgumentError: the table is pinned to a version.
            UnsupportedFeatureError: the table has column mapping, or files with deletion vectors, which such engines
                would read as if no row were deleted; or a partition value is too long for the name of a directory.
            DeltaError: some manifests may describe an older version. Generate them again.
        """
        return generate(self._newest_to_change(), mode)
