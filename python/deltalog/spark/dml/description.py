"""What a statement is, as `StatementDescription.java` describes it."""

import json
from typing import Any, NamedTuple

from deltalog.spark.dml.text import Clause, StatementText
from deltalog.spark.jvm import Jvm
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
    """The tables that it reads beside its target."""
    has_subquery: bool
    settings: Settings

    @classmethod
    def of(cls, jvm: Jvm, session: Any, statement: Any) -> "Description":
        """Describes a resolved statement of Spark, in which the current time has a value."""
        parts = json.loads(jvm.static("StatementDescription", "json", session, statement))
        clauses = [_clauses(parts, name) for name in ("matched", "notMatched", "notMatchedBySource")]
        return cls(
            StatementText(parts["name"], parts["predicate"], *clauses),
            parts["isTable"],
            Options(parts.get("options", {})),
            parts.get("evolved"),
            Source.of(parts["sources"]),
            Source.of(parts["otherSources"]),
            parts["hasSubquery"],
            Settings.of_parts(parts["settings"]),
        )


def _clauses(parts: dict[str, Any], name: str) -> list[Clause]:
    return [(condition, action) for condition, action in parts.get(name, [])]
