"""Settings for the work after a commit: checkpoints, log compactions, and the deletion of expired parts of a log.

Threads of the process do this work after the commit, so that a commit returns as soon as it is durable. For each table,
one task runs at a time, and if several checkpoints are due, only the newest is written. A failure is logged and never
fails a commit. When the interpreter exits, it waits for this work, but at most for a minute. Unfinished work is then
given up; the files that it leaves are ignored by readers. Processes that were forked, or that `multiprocessing` has
started, may end without waiting. Their commits do this work before they return.

A program that deletes the directory of a table should call `wait` first. Otherwise a file may appear in the directory
while it is being deleted, and `shutil.rmtree` fails.
"""

import sys

from deltalog import _internal
from deltalog.arguments import span_argument
from deltalog.checked import checked

__all__ = ["run_in_background", "wait"]


@checked
def run_in_background(enabled: bool) -> None:
    """Sets whether this process does the work after a commit in the background, or before the commit returns.

    If the work is done before a commit returns, the resulting files are always the same, and a checkpoint exists even
    if the program is killed right after the commit.
    """
    _internal.run_upkeep_in_background(enabled)


@checked
def wait(timeout: float | None = None) -> bool:
    """Waits until all background work for the commits of this process is done.

    If other threads continue to commit, this includes the work after their commits.

    Args:
        timeout: the longest time to wait, in seconds; None for no limit.

    Returns:
        Whether the work was done within the timeout.
    """
    return _internal.wait_for_upkeep(span_argument(timeout, "timeout"))


def _is_worker() -> bool:
    """Returns whether `multiprocessing` has started this process. Such a process may end without calling functions that
    are registered with `atexit`.
    """
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


if _is_worker():
    run_in_background(False)
