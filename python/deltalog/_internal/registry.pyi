"""The newest versions of the tables that the process has opened."""

def forget_snapshots() -> None:
    """Drops the snapshots that the process keeps, so that the next one is opened as in a new process.

    For benchmarks.
    """
