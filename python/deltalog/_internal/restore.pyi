"""RESTORE: returns a table to an earlier version."""

from deltalog._internal.snapshot import Snapshot
from deltalog.commit import CommitArguments

def restore(
    snapshot: Snapshot,
    earlier: Snapshot,
    timestamp: str | None,
    ignore_missing_files: bool,
    allow_protocol_downgrade: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> tuple[dict[str, int], int | None]:
    """Restores the version of `earlier` as the newest one. Returns the metrics, and the version of the commit."""
