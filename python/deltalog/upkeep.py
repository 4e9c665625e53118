"""The work after a commit: checkpoints, log compactions, and the removal of expired parts of a log.

Threads of the process do this work after the commit, so that a commit returns as soon as it is durable. For each table,
one thing is done at a time, and if several checkpoints are due, only the newest is written. A failure is logged and
never fails a commit. When the interpreter exits, it waits for this work, for a minute at most; unfinished work is given
up, and leaves nothing behind that readers know. Processes that were forked, or that `multiprocessing` has started, may
end without waiting. Their commits do this work before they return.

A program that deletes the directory of a table should call `wait` before. Otherwise a file may appear in the directory
while it is being deleted, and `shutil.rmtree` fails.
"""

import sys

from deltalog import _internal
from deltalog.arguments import span_argument
from deltalog.checked import checked

__all__ = ["run_in_background", "wait"]


@checked
def run_in_background(enabled: bool) -> None:
    """Sets whether this process does the work after its commits in the background, or before the commits return.

    Commits that do the work themselves always leave the same files, and a program that is killed right after a commit
    has its checkpoint.
    """
    _internal.run_upkeep_in_background(enabled)


@checked
def wait(timeout: float | None = None) -> bool:
    """Waits until all work after this process's commits is done.

    If other threads continue to commit, this includes the work after their commits.

    Args:
        timeout: the longest time to wait, in seconds; None for no limit.

    Returns:
        Whether it was done in time.
    """
    return _internal.wait_for_upkeep(span_argument(timeout, "timeout"))


def _is_worker() -> bool:
    """Returns whether `multiprocessing` has started this process: it may end without running `atexit`."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


if _is_worker():
    run_in_background(False)
