"""The tables that the rows of a write are read from, as `SourceVersions.java` finds them in its plan."""

from collections.abc import Iterable
from typing import NamedTuple


class Source(NamedTuple):
    """A table at a version, and the rows of it that a plan depends on."""

    planner: str
    """The key of the planner."""
    filters: str
    """A condition that the rows meet (`ReadFilters.java`), as `FilterText.java` writes it; empty for all rows."""

    @classmethod
    def of(cls, pairs: Iterable[Iterable[str]]) -> "list[Source]":
        """Returns the sources in the JSON of `SourceVersions.java`."""
        return [cls(*pair) for pair in pairs]
