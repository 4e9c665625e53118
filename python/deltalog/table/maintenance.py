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
    """Writes manifests of the newest version's files. Returns the version."""
    if mode.lower() != _MODE:
        raise wrong_argument("mode", mode, f"{_MODE!r}, which is the only mode")
    version, _, _ = _internal.generate_manifests(snapshot)
    return version


@checks_arguments
class TableMaintenance(TableHandle):
    """The methods of `DeltaTable` for VACUUM, statistics, FSCK and manifests."""

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
        After a VACUUM, older versions can no longer be read. Files and directories whose names begin with `_` or `.`
        are never deleted, apart from `_change_data` and the directories of partitions. Other tables inside the table's
        directory are not deleted either.

        The table does not know its shallow clones. They may need files that were removed from this table, so a VACUUM
        may make them unreadable.

        Args:
            retention_hours: how long files are kept after they were removed; by default the table's property
                `delta.deletedFileRetentionDuration`, or 7 days. It must be longer than the longest write and the
                longest query of an old version.
            dry_run: delete nothing.
            enforce_retention_duration: refuses a retention that is shorter than the table's.
            full: find files by listing the whole table. If False, only files that commits have removed since the last
                VACUUM are found, by reading the log; files that failed writes have left are not found.
            keep_versions: versions whose files are kept, regardless of their age.
            inventory: finds the files in an inventory of the store instead of listing it: an Arrow stream with the
                columns `path` (full paths, not encoded), `length`, `isDir` and `modificationTime` (milliseconds since
                the epoch, or a timestamp).
            commit_properties: what to record with the commits `VACUUM START` and `VACUUM END`.

        Returns:
            The paths of the files that were found, relative to the table's root, in no particular order. `vacuum_plan`
            also has their sizes, and the reasons why they may be deleted.

        Raises:
            InvalidArgumentError: the retention is shorter than the table's, the inventory describes another location,
                or the table is pinned to a version.
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
        """Finds the files that the newest version of the table no longer needs, with their sizes and the reasons.

        Takes the same arguments, and raises the same errors, as `vacuum`. You can inspect the plan, and delete the
        files with its method `delete()`.
        """
        if inventory is not None and not full:
            refused = InvalidArgumentError(
                "an inventory replaces the listing of all files, so full cannot be False"
            )
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
        """Computes statistics for files of the newest version whose statistics are missing or poor.

        Statistics are poor if they lack the number of rows, or lack values for an indexed column
        (`delta.dataSkippingStatsColumns`, `delta.dataSkippingNumIndexedCols`), or if their bounds are wide although no
        row is deleted. New statistics come from the footer of a file, and from its rows if the footer is not enough. No
        data file is written, and the change data feed shows no change. Files that another writer changes in the
        meantime are skipped. A table with very many files needs several commits; if something fails later, earlier
        commits stand.

        Only statistics that deltalog has computed let a statement remove files without reading them, and show that a
        column of doubles has no NaN. If the statistics come from another writer, this method replaces them with
        deltalog's own, which are computed from the rows, or from the footer if Spark or deltalog has written the file.

        Args:
            predicate: an SQL condition on partition columns that selects partitions; by default, all.
            all_files: whether statistics of all files are computed. The statistics of files with deletion vectors then
                become exact, which requires reading their rows.
            dry_run: whether to read and commit nothing. `numFilesChosen` is then the number of files that would be
                read.
            commit_properties: what to record with the commits. Its `app_transactions` must be empty.

        Returns:
            The metrics: `numFilesConsidered`, `numFilesChosen`, `numUpdatedFiles`, `numFilesByFooter`,
            `numFilesByRows`, and `numFilesGivenUp`, the number of files that another writer has changed in the
            meantime.

        Raises:
            InvalidArgumentError: the predicate uses columns that are not partition columns, or the table is pinned to a
                version.
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

        Nothing is changed. A file counts as missing only if the store answers that it does not exist. If a request
        fails for another reason, the method raises an error.

        The columns of the result are

        - `path`: as in `files()`.
        - `problem`: `missing file`, `wrong size`, `damaged file`, `unsupported file` (it is encrypted or has an unknown
          codec, and may be intact), `wrong row count` (not the number in the statistics), `missing vector`, `damaged
          vector` (checksum, number or positions of rows), `wrong statistics` (queries may overlook rows), or
          `unreferenced file` (the newest version neither contains it nor records its removal; older versions may need
          it, and VACUUM deletes it when it is old enough; change data files are not checked).
        - `detail`: what was found.
        - `partition_values`: the partition values as the log writes them, by column; NULL for an unreferenced file.
        - `size` and `modification_time`: as in the log; for an unreferenced file as in the store.
        - `num_rows`: the rows of the file that are not deleted, if the log has their number.

        Args:
            level: `files` checks that data files and deletion vector files exist, and their sizes; `footers` also reads
                the footers of data files, and the deletion vectors; `rows` also reads all rows, and compares them with
                the statistics.

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

        Look at the result of `check()` or a dry run first, and copy the files back if you have copies: otherwise their
        rows are lost. Because it is unknown which rows these were, the change data feed of the new version cannot be
        read. No file is deleted from the store.

        Args:
            dry_run: whether to commit nothing.
            remove_damaged: whether files that exist but cannot be read as Parquet are removed as well. All footers and
                deletion vectors are then read.
            drop_files_without_vectors: whether files whose deletion vectors do not exist (or, with `remove_damaged`, do
                not fit) are removed with all of their rows. Without their vectors, deleted rows of these files would
                reappear, so the files cannot stay in the table.
            commit_properties: what to record with the commit. Its `app_transactions` must be empty.

        Returns:
            `dry_run` and `files_removed`, the paths, as `deltalake` returns them; `files`, one dictionary per file with
            `dataFilePath`, `dataFileMissing`, `dataFileDamaged`, `deletionVectorPath` and `deletionVectorFileMissing`;
            and the metrics of the commit: `numFilesScanned`, `numRemovedFiles`, `numRemovedBytes`, `numRemovedRows` (as
            far as the log has them), `numMissingFiles`, `numFilesWithoutVectors`. If no file has to be removed, nothing
            is committed.

        Raises:
            InvalidArgumentError: files are missing and the table is append-only, or the table is pinned to a version.
            MissingFileError, CorruptDataError: deletion vectors are missing or do not fit their files, and the
                arguments do not allow removing these files. A dry run raises this error, too. Nothing was committed.
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
        """Writes manifests of the files of the newest version, for Presto, Athena and other engines that read Hive's
        format.

        The manifests are in `_symlink_format_manifest/`. Each partition that has files has one manifest, with one full
        path per line; manifests of other partitions are deleted. With the table property
        `delta.compatibility.symlinkFormatManifest.enabled`, each commit by deltalog or the JVM connector updates the
        manifests; if that fails, deltalog logs a warning. Other clients do not update them.

        Args:
            mode: `symlink_format_manifest`, in upper or lower case.

        Returns:
            The version whose files the manifests list.

        Raises:
            InvalidArgumentError: the table is pinned to a version.
            UnsupportedFeatureError: the table has column mapping, or files with deletion vectors, which such engines
                would read as if no row were deleted; or a partition value is too long for the name of a directory.
            DeltaError: some manifests may describe an older version. Generate them again.
        """
        return generate(self._newest_to_change(), mode)
