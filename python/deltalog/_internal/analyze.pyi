"""Statistics of files."""

from typing import Any

from deltalog._internal.snapshot import Snapshot
from deltalog.commit import CommitArguments

def recompute_statistics(
    snapshot: Snapshot,
    predicate: str | None,
    all_files: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> tuple[dict[str, Any], int | None]:
    """Computes statistics for files whose statistics are missing, incomplete or inexact, or for all files
    (`all_files`).

    Returns the metrics, and the version of the last commit, if any.
    """
