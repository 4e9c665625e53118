"""Writes that had no effect, because an application had recorded them before."""

from typing import final

@final
class AlreadyApplied:
    """A write that had no effect, because its application had already recorded this version or a later one.

    Protocol: "Transaction Identifiers". Equal if all properties are.
    """

    @property
    def app_id(self) -> str:
        """The application."""
    @property
    def version(self) -> int:
        """The application's version of the write, which was not repeated."""
    @property
    def recorded(self) -> int:
        """The version that the table has recorded for the application."""
    @property
    def table_version(self) -> int:
        """The version of the table in which the record was found."""
