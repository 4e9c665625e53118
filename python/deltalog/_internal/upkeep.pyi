"""The threads that do the work after commits."""

from datetime import timedelta

def run_upkeep_in_background(enabled: bool) -> None:
    """Sets whether the work after a commit is done in the background."""

def wait_for_upkeep(timeout: timedelta | None = None) -> bool:
    """Waits for the work that follows the commits of this process. Returns whether all of it was done within the
    timeout. If there is no timeout, waits without a limit.
    """
