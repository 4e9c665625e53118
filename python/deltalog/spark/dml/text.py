"""The description of a statement in the history of the table."""

from typing import NamedTuple

Clause = tuple[str | None, str]
"""The condition of a clause, and its action: `update`, `delete` or `insert`."""


class StatementText(NamedTuple):
    """The name, the conditions and the clauses of a statement, for the history."""

    name: str
    predicate: str | None
    matched: list[Clause]
    not_matched: list[Clause]
    not_matched_by_source: list[Clause]

    @property
    def updates(self) -> bool:
        """Whether the statement may change rows."""
        return self.name == "UPDATE" or "update" in self._actions_on_rows()

    @property
    def deletes(self) -> bool:
        """Whether the statement may delete rows."""
        return self.name == "DELETE" or "delete" in self._actions_on_rows()

    def _actions_on_rows(self) -> set[str]:
        return {action for _, action in (*self.matched, *self.not_matched_by_source)}


def matches_once(text: StatementText) -> bool:
    """Returns whether a MERGE refuses several matches for one row of the target (see `merge.py`)."""
    if not text.matched:
        return bool(text.not_matched_by_source)
    return text.matched != [(None, "delete")]
