"""What a statement is, as the history of the table shows it."""

from typing import Any, NamedTuple

from deltalog.spark.jvm import Jvm

Clause = tuple[str | None, str]
"""The condition of a clause, and what it does: `update`, `delete` or `insert`."""

_ACTIONS = {"UpdateAction": "update", "DeleteAction": "delete", "InsertAction": "insert"}
_NAMES = {"DeleteFromTable": "DELETE", "UpdateTable": "UPDATE", "MergeIntoTable": "MERGE"}


class StatementText(NamedTuple):
    """A statement by its name, its conditions and its clauses."""

    name: str
    predicate: str | None
    matched: list[Clause]
    not_matched: list[Clause]
    not_matched_by_source: list[Clause]

    @property
    def updates(self) -> bool:
        """Whether it may change rows."""
        return self.name == "UPDATE" or "update" in self._actions_on_rows()

    @property
    def deletes(self) -> bool:
        """Whether it may delete rows."""
        return self.name == "DELETE" or "delete" in self._actions_on_rows()

    def _actions_on_rows(self) -> set[str]:
        return {action for _, action in (*self.matched, *self.not_matched_by_source)}

    @classmethod
    def of(cls, jvm: Jvm, statement: Any) -> "StatementText":
        """Describes a resolved statement of Spark, in which the current time has a value."""
        name = name_of(statement)
        if name == "MERGE":
            return cls(
                name,
                readable(jvm, statement.mergeCondition()),
                _clauses(jvm, statement.matchedActions()),
                _clauses(jvm, statement.notMatchedActions()),
                _clauses(jvm, statement.notMatchedBySourceActions()),
            )
        return cls(name, _predicate(jvm, condition_of(jvm, statement)), [], [], [])


def name_of(statement: Any) -> str:
    """Returns the name of a statement of Spark: `DELETE`, `UPDATE` or `MERGE`."""
    return _NAMES[str(statement.getClass().getSimpleName())]


def matches_once(text: StatementText) -> bool:
    """Returns whether a MERGE refuses several matches of a row of the target (see `merge.py`)."""
    if not text.matched:
        return bool(text.not_matched_by_source)
    return text.matched != [(None, "delete")]


def condition_of(jvm: Jvm, statement: Any) -> Any | None:
    """Returns the condition of a DELETE or UPDATE; None if it concerns all rows."""
    condition = statement.condition()
    if statement.getClass().getSimpleName() == "UpdateTable":
        condition = condition.get() if condition.isDefined() else None
    is_true = condition is not None and readable(jvm, condition) == "true"
    return None if is_true else condition


def readable(jvm: Jvm, expression: Any) -> str:
    """Returns the SQL text of an expression."""
    return str(jvm.static("FilterText", "readable", expression))


def _predicate(jvm: Jvm, condition: Any | None) -> str | None:
    return None if condition is None else readable(jvm, condition)


def _clauses(jvm: Jvm, actions: Any) -> list[Clause]:
    found: list[Clause] = []
    for action in jvm.sequence(actions):
        condition = action.condition().get() if action.condition().isDefined() else None
        found.append((_predicate(jvm, condition), _ACTIONS[str(action.getClass().getSimpleName())]))
    return found
