"""FSCK: checks and repairs of a table."""

from typing import Any

from deltalog._internal.snapshot import Snapshot
from deltalog._internal.stream import ArrowStream
from deltalog.commit import CommitArguments

def check_files(snapshot: Snapshot, level: str) -> ArrowStream:
    """Checks the files of a version; see `DeltaTable.check`."""

def repair(
    snapshot: Snapshot,
    removes_damaged: bool,
    drops_files_without_vectors: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> tuple[dict[str, int], list[dict[str, Any]], int | None]:
    """Removes from the table the files that no longer exist in the store and, with `removes_damaged`, damaged files.

    With `drops_files_without_vectors`, also removes files whose deletion vectors are missing or, with
    `removes_damaged`, damaged. Otherwise, such a file is an error.

    Returns the metrics, the removed files, and the version of the commit, if anything was committed.
    """
