"""The threads that do what follows commits."""

from datetime import timedelta

def run_upkeep_in_background(enabled: bool) -> None:
    """Sets whether what follows a commit is done behind it."""

def wait_for_upkeep(timeout: timedelta | None = None) -> bool:
    """Waits for what follows the commits of this process; returns whether it was done in time."""
