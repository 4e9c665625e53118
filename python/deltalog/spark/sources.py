"""The tables from which the rows of a write are read. `SourceVersions.java` finds them in the plan of the write."""

from collections.abc import Iterable
from typing import NamedTuple


class Source(NamedTuple):
    """A version of a table that a plan reads, and a condition on the rows that it reads."""

    planner: str
    """The key of the planner that lists the files."""
    filters: str
    """The condition that the rows meet (`ReadFilters.java`), in the SQL of `FilterText.java`; empty for all rows."""

    @classmethod
    def of(cls, pairs: Iterable[Iterable[str]]) -> "list[Source]":
        """Parses the sources that `SourceVersions.java` has written as JSON."""
        return [cls(*pair) for pair in pairs]
