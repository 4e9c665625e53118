"""The progress of long operations, as numbers."""

from typing import final

@final
class ProgressObserver:
    """Watches the long operations of this process, of all threads, that begin while it lives."""

    def __new__(cls) -> ProgressObserver:
        """Begins to watch."""
    def reports(self) -> list[tuple[int, str, str, int, int | None, str, bool]]:
        """Returns a report of each operation that has begun; of each that has ended, one more.

        A report has an id, the operation, the table, what is done, all work if that is known, the unit, and whether the
        operation has ended.
        """
