"""The methods of `DeltaTable` for the content of its log, and for checkpoints, compactions and checksums."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from deltalog import _internal
from deltalog.arguments import limit_argument, required_version, version_argument
from deltalog.checked import checks_arguments
from deltalog.table.handle import TableHandle
from deltalog.verification import Verification

__all__ = ["Commit", "TableLog"]


class Commit:
    """A commit in the log of a table."""

    def __init__(self, commit: _internal.Commit) -> None:
        self._commit = commit

    @property
    def version(self) -> int:
        """The version that the commit has made."""
        return self._commit.version

    @property
    def timestamp(self) -> int:
        """The time of the commit, in milliseconds since the epoch."""
        return self._commit.timestamp_ms

    @property
    def info(self) -> dict[str, Any]:
        """The provenance that the writer has recorded (protocol: "Commit Provenance Information"); may be empty."""
        json_text = self._commit.info_json
        info: dict[str, Any] = {} if json_text is None else json.loads(json_text)
        return info

    def actions(self) -> _internal.ArrowStream:
        """Returns the actions, one row each, with the columns of `DeltaTable.commit_actions`."""
        return self._commit.actions()

    def __repr__(self) -> str:
        return f"Commit(version={self.version}, operation={self.info.get('operation')!r})"


@checks_arguments
class TableLog(TableHandle):
    """The methods of `DeltaTable` for its log: commits, checkpoints, checksums."""

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Returns the commits up to this version, newest first, at most `limit`.

        Each is a dictionary with `version`, `timestamp` (milliseconds since the epoch) and the fields that its
        writer recorded, such as `operation`, `operationParameters`, `operationMetrics`, `engineInfo` and
        `userMetadata`. Commits that were cleaned up are left out.
        """
        return [json.loads(entry) for entry in self._snapshot.history_json(limit_argument(limit))]

    def history_arrow(self, limit: int | None = None) -> _internal.ArrowStream:
        """Returns the history as an Arrow stream with one row per commit.

        Columns: `version`, `timestamp`, `operation`, `operation_parameters` and `operation_metrics` (maps of
        text), `user_id`, `user_name`, `user_metadata`, `engine_info`, `txn_id`, `read_version`,
        `isolation_level`, `is_blind_append`, `in_commit_timestamp`, `commit_timestamp` (the writer's clock),
        and `other`: a JSON object with all other fields. A field that a writer did not record is null.
        """
        return self._snapshot.history(limit_argument(limit))

    def commit_actions(self, start: int, end: int | None = None) -> _internal.ArrowStream:
        """Returns the actions of the versions `start` to `end`, both included, as an Arrow stream.

        If `end` is None, it is this version. There is one row per action, in the order of the log. The columns are
        `version`, `timestamp` (when the version was committed), `action` (its name in the log, such as `add`),
        and `json` (the action's content as in the log). File actions also have `path` (as in `files`), `size`,
        `partition_values` (a map of strings), `data_change`, `modification_time` (for a `remove`, when the file
        was removed) and `deletion_vector` (its unique id).

        Raises:
            VersionNotFoundError: a commit was cleaned up, or does not exist yet; the message lists the readable
                versions.
            CorruptLogError: a commit between others is missing, or a commit is damaged.
        """
        first = required_version(start, "start")
        return self._snapshot.commit_actions(first, version_argument(end, "end"))

    def commits(self, start: int = 0) -> Iterator[Commit]:
        """Returns the commits from version `start` on, up to the newest of the log, even if an older version is open.

        Each commit is read when the iterator reaches it, so only one is in memory at a time. If `start` is the version
        after the newest, there are no commits. A program that waits for new commits calls the method again later with
        the same `start`.

        Raises:
            VersionNotFoundError: the commit of a version was cleaned up, or `start` is later than the version after
                the newest; the message lists the readable versions.
            CorruptLogError: a commit between others is missing, or a commit is damaged.
            TableReplacedError: the table was dropped, and another one was created in its place.
        """
        first = required_version(start, "start")
        return map(Commit, self._snapshot.commits(first))

    def log_retention(self) -> timedelta:
        """Returns how long the commits of the log are kept: `delta.logRetentionDuration`, 30 days if it is not set.

        Raises:
            UnsupportedFeatureError: the property is not a time span in weeks or smaller units.
        """
        return self._snapshot.log_retention

    def deleted_file_retention(self) -> timedelta:
        """Returns how long data files are kept after they were removed from the table.

        This is the property `delta.deletedFileRetentionDuration`, 7 days if it is not set.

        Raises:
            UnsupportedFeatureError: the property is not a time span in weeks or smaller units.
        """
        return self._snapshot.deleted_file_retention

    def ensure_removable(self) -> None:
        """Checks that the table is not append-only, so that rows may be deleted or changed (protocol: "Append-only
        Tables").

        Raises:
            InvalidArgumentError: the table is append-only.
        """
        self._snapshot.ensure_removable()

    def verify(self) -> Verification:
        """Compares this version, replayed from the log, with its checksum file, if there is one.

        Differences do not raise an error; they are part of the result.
        """
        return Verification._of(self._snapshot)

    def cleanup_metadata(self, *, dry_run: bool = False) -> list[str]:
        """Deletes the part of the table's log that is older than its retention (protocol: "Metadata Cleanup").

        The retention is the property `delta.logRetentionDuration`, 30 days if it is not set. Versions expire by whole
        days, and only versions before a checkpoint are deleted, so that every later version stays readable. Data files
        are not deleted. A commit does the same after it has written a checkpoint, unless the property
        `delta.enableExpiredLogCleanup` is false.

        Args:
            dry_run: delete nothing.

        Returns:
            The paths of the deleted files relative to the table's root; with `dry_run`, of the files that would be
            deleted.

        Raises:
            InvalidArgumentError: the table is pinned to a version.
            UnsupportedFeatureError: the table cannot be written, a catalog manages it, or its retention is not a
                time span in weeks or smaller units.
        """
        return self._newest_to_change().clean_up_log(dry_run)

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Writes the commits of a range of versions into one additional file (protocol: "Log Compaction Files").

        Readers can then read that file instead of the commits, which are not deleted. If the file already exists,
        nothing is written.

        Args:
            starting_version: the first version.
            ending_version: the last version.

        Raises:
            InvalidArgumentError: the range has fewer than two versions, ends after the version that is open, or has
                more than 1 GiB of commits.
            VersionNotFoundError: a commit of the range was cleaned up.
            UnsupportedFeatureError: the table cannot be written, or a commit has an action that is not known.
        """
        start = required_version(starting_version, "starting_version")
        self._snapshot.compact_log(start, required_version(ending_version, "ending_version"))

    def domain_metadata(self) -> dict[str, str]:
        """Returns the configuration of each metadata domain (protocol: "Domain Metadata")."""
        return self._snapshot.domain_metadata()

    def transaction_versions(self) -> dict[str, int]:
        """Returns the newest version that each application has recorded (protocol: "Transaction Identifiers")."""
        return self._snapshot.transaction_versions()

    def transaction_version(self, app_id: str) -> int | None:
        """Returns the newest version that the application has recorded; None if it has recorded none.

        An application records its version with a write: `CommitProperties(app_transactions=[...])`.
        """
        return self._snapshot.transaction_versions().get(app_id)

    def find_commit(self, transaction_id: str) -> int | None:
        """Returns the version that a transaction has committed, after reading the newest state of the log.

        Use it to find out whether a write that raised `CommitStateUnknownError` was committed: pass the error's
        `transaction_id`. If the write was to create the table and opening it raises `NotATableError`, nothing was
        committed.

        Returns:
            The version; None if no commit of the log carries the id. Commits that were cleaned up are not found.
        """
        return self._snapshot.find_commit(transaction_id)

    def create_checkpoint(self) -> None:
        """Writes a checkpoint of the version that is open, so that readers need no older commits.

        The format of the checkpoint depends on the table's properties: `delta.checkpointPolicy`,
        `delta.checkpoint.writeStatsAsJson` and `delta.checkpoint.writeStatsAsStruct`. Writes do this on their own,
        every `delta.checkpointInterval` versions. A checkpoint does not change the table, so this also works for a
        table that is pinned to a version.

        Raises:
            DeltaError: the table cannot be read or written. It is unchanged.
        """
        self._snapshot.create_checkpoint()
