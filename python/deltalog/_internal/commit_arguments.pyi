"""The result of writes that were skipped because the table had already recorded them."""

from typing import final

@final
class AlreadyApplied:
    """The result of a write that was skipped, because the table has already recorded this version of the application or
    a later one.

    Protocol: "Transaction Identifiers". Two objects are equal if all their properties are equal.
    """

    @property
    def app_id(self) -> str:
        """The name of the application."""
    @property
    def version(self) -> int:
        """The application's version in the skipped write."""
    @property
    def recorded(self) -> int:
        """The application's version that the table has recorded."""
    @property
    def table_version(self) -> int:
        """The version of the table in which the record was found."""
