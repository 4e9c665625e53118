"""The threads that do the work after commits."""

from datetime import timedelta

def run_upkeep_in_background(enabled: bool) -> None:
    """Sets whether the work after a commit is done in the background."""

def wait_for_upkeep(timeout: timedelta | None = None) -> bool:
    """Waits for the work after the commits of this process; returns whether it was done in time."""
