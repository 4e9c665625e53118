"""Parses the description of a statement that `StatementDescription.java` writes."""

import json
from typing import Any, NamedTuple

from deltalog.spark.dml.generated import Clause
from deltalog.spark.dml.text import StatementText
from deltalog.spark.options import Options
from deltalog.spark.sources import Source
from deltalog.spark.write.settings import Settings


class Description(NamedTuple):
    """A DELETE, UPDATE or MERGE before it runs."""

    text: StatementText
    is_table: bool
    """Whether the target is a table and not a view."""
    options: Options
    """The options with which the table was opened."""
    evolved: str | None
    """The schema of the columns that a MERGE assigns, if it may add columns."""
    sources: list[Source]
    """All tables that the statement reads."""
    other_sources: list[Source]
    """The tables that the statement reads in addition to its target."""
    has_subquery: bool
    settings: Settings
    assigned: set[str]
    """The columns, in lower case, to which an UPDATE assigns a value, as a whole or in part."""
    updates: list[Clause]
    """The clauses of a MERGE that change rows, with the numbers that `MergePlans.java` gives them."""
    inserts: list[Clause]
    """The clauses of a MERGE that insert rows, with the same numbers."""
    with_schema_evolution: bool
    """Whether a MERGE requests that missing columns are added to the table."""

    @classmethod
    def of(cls, text: str) -> "Description":
        """Parses the description of a statement."""
        parts = json.loads(text)
        matched, inserting, by_source = (
            parts.get(name, []) for name in ("matched", "notMatched", "notMatchedBySource")
        )
        clauses = [
            [(condition, action) for condition, action, _ in kind] for kind in (matched, inserting, by_source)
        ]
        return cls(
            StatementText(parts["name"], parts["predicate"], *clauses),
            parts["isTable"],
            Options(parts.get("options", {})),
            parts.get("evolved"),
            Source.of(parts["sources"]),
            Source.of(parts["otherSources"]),
            parts["hasSubquery"],
            Settings.of_parts(parts["settings"]),
            _lower(parts.get("assigned", [])),
            _writing([*matched, *by_source]),
            _writing(inserting),
            parts.get("withSchemaEvolution", False),
        )


def _writing(clauses: list[Any]) -> list[Clause]:
    numbered = enumerate(clauses, 1)
    return [(number, _lower(assigned)) for number, (_, action, assigned) in numbered if action != "delete"]


def _lower(names: list[str]) -> set[str]:
    return {name.lower() for name in names}
