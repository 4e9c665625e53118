"""DELETE, UPDATE and MERGE."""

from collections.abc import Sequence

from deltalog._internal.commit_arguments import AlreadyApplied
from deltalog._internal.snapshot import Snapshot
from deltalog.arrow_types import ArrowData
from deltalog.commit import CommitArguments
from deltalog.table.merge import MergeArguments

def delete_rows(
    snapshot: Snapshot, predicate: str | None, commit: CommitArguments, file_format: str | None = None
) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
    """Deletes rows, based on `snapshot`. Returns the metrics, and the versions that were committed."""

def update_rows(
    snapshot: Snapshot,
    values: Sequence[tuple[str, str]],
    predicate: str | None,
    commit: CommitArguments,
    file_format: str | None = None,
) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
    """Assigns new values, given as SQL, to columns. Returns the metrics, and the versions that were committed."""

def merge_rows(
    snapshot: Snapshot,
    source: ArrowData,
    arguments: MergeArguments,
    commit: CommitArguments,
    file_format: str | None = None,
    merge_schema: bool = False,
) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
    """Merges the rows of an Arrow stream. Returns the metrics, and the versions that were committed.

    If the rows were read from the table itself, the statement is based on the version from which they were read.
    """
