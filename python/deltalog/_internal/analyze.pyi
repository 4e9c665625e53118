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
    """Computes statistics for files that have no statistics or poor ones, or for `all_files`.

    Returns the metrics, and the version of the last commit, if any.
    """
