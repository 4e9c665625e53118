"""Conditions of other libraries, as SQL that a scan of the core understands.

A condition is a conjunction. Each part that has an exact translation is evaluated by the scan, which skips files and
pages by it. The library evaluates the others. Arithmetic is never translated, because its overflow is an error in SQL.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias, TypeVar

from deltalog import _internal
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.filters import quoted, value_as_sql
from deltalog.table.delta_table import DeltaTable, ensure_no_options

__all__ = ["MOST_VALUES", "Location", "NotTranslated", "Rows", "column", "flat", "literal", "translated"]

_Node = TypeVar("_Node")

Location: TypeAlias = DeltaTable | str | os.PathLike[str]
"""A table, or its path or URL."""

MOST_VALUES = 10_000
"""The most values of an IN that is translated."""


class NotTranslated(Exception):  # noqa: N818 (no error: the library evaluates the condition itself)
    """A condition has no exact equivalent."""


class Rows(NamedTuple):
    """The rows of a table at one version, which stay the same whatever becomes of the table's handle."""

    snapshot: _internal.Snapshot
    is_pinned: bool
    """Whether the caller has chosen the version."""

    @classmethod
    def of(cls, table: Location, storage_options: Mapping[str, str] | None) -> "Rows":
        """Returns the rows of the version that a table shows, or of the newest version at a location."""
        if isinstance(table, DeltaTable):
            ensure_no_options(storage_options=storage_options)
        else:
            table = DeltaTable(table, storage_options=storage_options)
        return cls(table._rows, table._opened.is_pinned)

    def read(self, columns: list[str] | None, condition: str | None) -> _internal.ArrowStream:
        """Returns the rows for which the condition is true. Strings are views, which are not copied."""
        return self.snapshot.scan(columns, condition, False, True, self.is_pinned)

    def empty(self) -> _internal.ArrowStream:
        """Returns a stream without rows, which has the columns of all others. Lists no file."""
        return self.snapshot.scan(None, None, False, True, self.is_pinned, 0)

    def understands(self, condition: str) -> bool:
        """Returns whether the scan can evaluate a condition. Lists no file."""
        try:
            self.snapshot.scan([], condition, False, True, self.is_pinned, 0)
        except (InvalidArgumentError, UnsupportedFeatureError):
            return False
        return True


def column(*parts: str) -> str:
    """Returns the SQL of a column, or of a field within structs."""
    return ".".join(map(quoted, parts))


def literal(value: Any) -> str:
    """Returns the SQL of a value. Raises `NotTranslated` for what has no exact spelling, such as NaN and NULL."""
    if isinstance(value, float) and not math.isfinite(value):
        raise NotTranslated
    if isinstance(value, (bool, int, float, str, bytes, date, datetime, Decimal)):
        return value_as_sql(value, None, "")
    raise NotTranslated


def flat(node: _Node, parts: Callable[[_Node], tuple[_Node, _Node] | None]) -> list[_Node]:
    """Returns the operands of a chain of ANDs, or of ORs, from left to right.

    `parts` returns the two sides of a node of the chain, and None for an operand. Without flattening, long chains would
    exceed the depth of parentheses that the core accepts.
    """
    found, rest = [], [node]
    while rest:
        first = rest.pop()
        sides = parts(first)
        if sides is None:
            found.append(first)
        else:
            rest += reversed(sides)
    return found


def translated(
    conjuncts: Iterable[_Node], sql: Callable[[_Node], str], rows: Rows
) -> tuple[str | None, list[_Node]]:
    """Returns the SQL of the conjuncts that the scan can evaluate, and the others.

    Raises no error for an unknown form of a condition: the library evaluates it.
    """
    found: list[str] = []
    others: list[_Node] = []
    for conjunct in conjuncts:
        try:
            text = sql(conjunct)
        except (
            NotTranslated,
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            AttributeError,
            RecursionError,
        ):
            others.append(conjunct)
            continue
        if rows.understands(text):
            found.append(text)
        else:
            others.append(conjunct)
    return " AND ".join(found) or None, others
