"""OPTIMIZE."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from deltalog._internal.snapshot import Snapshot
from deltalog.commit import CommitArguments

def optimize(
    snapshot: Snapshot,
    predicate: str | None,
    target_size: int | None,
    commit_interval: timedelta | None,
    purges: bool,
    dry_run: bool,
    commit: CommitArguments,
    z_order: tuple[Sequence[str], str] | None = None,
    cluster: tuple[bool, int | None] | None = None,
    check_rows: bool = False,
    file_format: str | None = None,
) -> tuple[dict[str, Any], int | None]:
    """Combines small files into larger ones, removes deleted rows and dropped columns from files (`purges`), or orders
    all rows by columns along a curve (`z_order`: the columns, and the name of the curve).

    In a clustered table, new rows are always clustered. `cluster` contains two values: whether to also cluster the
    other rows by the current columns, and the maximum size of a cube in bytes.

    Returns the metrics, and the version of the last commit, if any.
    """
