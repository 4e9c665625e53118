"""The progress of long operations, as numbers."""

from typing import final

@final
class ProgressObserver:
    """Watches the long operations that begin while this object exists, in all threads of this process."""

    def __new__(cls) -> ProgressObserver:
        """Begins to watch."""
    def reports(self) -> list[tuple[int, str, str, int, int | None, str, bool]]:
        """Returns a report for each running operation, and one last report for each operation that has ended since the
        previous call.

        A report contains an id, the name of the operation, the table, the amount of work done, the total amount if it
        is known, the unit, and whether the operation has ended.
        """
