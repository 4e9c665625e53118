"""CLONE: copies a table, with or without its data files."""

from deltalog._internal.snapshot import Snapshot
from deltalog.clone import CloneArguments
from deltalog.commit import CommitArguments

def clone_table(
    snapshot: Snapshot, uri: str, arguments: CloneArguments, commit: CommitArguments
) -> tuple[dict[str, int], int | None, list[str]]:
    """Creates a clone. Returns the metrics, the version of the commit, and the roots that its readers must allow."""
