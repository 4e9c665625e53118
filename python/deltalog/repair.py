"""FSCK: whether the files of a table are what its log says, and a repair of the log."""

from typing import Any, Literal

from deltalog import _internal
from deltalog.checked import checks_arguments
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.handle import TableHandle

__all__ = ["TableRepair"]


@checks_arguments
class TableRepair(TableHandle):
    """Checks and repairs."""

    def check(self, level: Literal["files", "footers", "rows"] = "footers") -> _internal.ArrowStream:
        """Checks whether the files of this version exist and match the log.

        Nothing is changed. A file counts as missing only if the store says so: a request that fails otherwise is an
        error.

        Args:
            level: `files` looks for data files and files of deletion vectors, and at sizes; `footers` also reads the
                footers of data files, and deletion vectors; `rows` also reads all rows, and compares them with the
                statistics.

        Returns:
            An Arrow stream, one row per problem, with the columns

            - `path`: as in `files()`.
            - `problem`: `missing file`, `wrong size`, `damaged file`, `unsupported file` (an encrypted one, or one with
              a codec that this version does not know: it may be whole), `wrong row count` (another one than in the
              statistics), `missing vector`, `damaged vector` (checksum, number or positions of rows), `wrong
              statistics` (queries may overlook rows), or `unreferenced file` (no file and no tombstone of the newest
              version: older ones may need it; a VACUUM deletes it when it is old enough; change data files are not
              checked).
            - `detail`: what was found.
            - `partition_values`: the texts of the log by column; NULL for an unreferenced file.
            - `size` and `modification_time`: as in the log; for an unreferenced file as in the store.
            - `num_rows`: the rows of the file that are not deleted, if the log has their number.

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
        """Removes missing files from the newest version, in one commit, together with their rows.

        Look at `check()` or a dry run first, and bring files back if there are copies: their rows are lost otherwise.
        Which rows these were cannot be known, so a change data feed of this version cannot be read. Nothing is deleted
        in the store.

        Args:
            dry_run: whether nothing is committed.
            remove_damaged: whether existing files that cannot be read as Parquet are removed as well. All
                footers and deletion vectors are then read.
            drop_files_without_vectors: whether files whose deletion vectors are not there (with `remove_damaged` also:
                do not fit) are removed with all of their rows. Without their vectors, deleted rows would come back.
            commit_properties: what to record with the commit. Its `app_transactions` must be empty.

        Returns: `dry_run` and `files_removed`, the paths, as `deltalake` returns them; `files`, one dictionary per file
        with `dataFilePath`, `dataFileMissing`, `dataFileDamaged`, `deletionVectorPath` and `deletionVectorFileMissing`;
        and the metrics of the commit: `numFilesScanned`, `numRemovedFiles`, `numRemovedBytes`, `numRemovedRows` (as far
        as the log shows it), `numMissingFiles`, `numFilesWithoutVectors`. If no file is missing, nothing is committed.

        Raises:
            InvalidArgumentError: the table is append-only, and files are missing; or it is pinned to a version.
            MissingFileError, CorruptDataError: deletion vectors are missing or do not fit, and their files are not
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
