"""Translates Polars and DuckDB filters into SQL conditions that a scan of the core evaluates.

A filter is split at its ANDs. The scan evaluates each part that has an exact translation, and skips files and pages
without matching rows. The library evaluates the other parts itself. Arithmetic is never translated, because in SQL an
overflow is an error, while Polars wraps around.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple, TypeAlias, TypeVar

from deltalog import _internal
from deltalog.arguments import location_argument
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError, hinted
from deltalog.filters import quoted, value_as_sql
from deltalog.table.delta_table import DeltaTable, ensure_no_options

__all__ = [
    "MOST_VALUES",
    "Location",
    "NotTranslated",
    "Rows",
    "both",
    "column",
    "ensure_distinct",
    "flat",
    "literal",
    "lower",
    "translated",
]

_Node = TypeVar("_Node")

Location: TypeAlias = DeltaTable | str | os.PathLike[str]
"""A table, or its path or URL."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)

MOST_VALUES = 10_000
"""The maximum number of values in an IN that is translated."""


class NotTranslated(Exception):  # noqa: N818 (not an error: the library evaluates the condition itself)
    """Raised if a condition has no exact translation to SQL."""


def opened_table(
    table: Location, storage_options: Mapping[str, str] | None, name: str = "table"
) -> DeltaTable:
    """Opens the table at a path or URL. Returns a `DeltaTable` unchanged; no options can be passed with it.

    Args:
        table: the value of a caller's argument.
        storage_options: the options of the store, for a path or URL.
        name: the name of that argument, for errors.
    """
    if not isinstance(table, DeltaTable):
        return DeltaTable(location_argument(table, name), storage_options=storage_options)
    ensure_no_options(storage_options=storage_options)
    return table


def lower(name: str) -> str:
    """Returns a name of a table as DuckDB and DataFusion compare it: the letters of ASCII in lower case."""
    return name.translate(_LOWER)


def ensure_distinct(names: Iterable[str]) -> None:
    """Refuses names of tables that a query cannot tell apart.

    Raises:
        InvalidArgumentError: two names differ only in upper and lower case.
    """
    known = list(names)
    if len(set(map(lower, known))) < len(known):
        refused = InvalidArgumentError("the names of two tables differ only in upper and lower case")
        raise hinted(refused, "pass other names: a query does not tell upper and lower case apart")


class Rows(NamedTuple):
    """The rows of a table at one version. They stay the same if the `DeltaTable` is later updated."""

    snapshot: _internal.Snapshot
    is_pinned: bool
    """Whether the caller has chosen the version, so that its rows may be older than the newest version."""

    @classmethod
    def of(cls, table: Location, storage_options: Mapping[str, str] | None) -> "Rows":
        """Returns the rows of the version of a `DeltaTable`, or of the newest version at a path or URL."""
        opened = opened_table(table, storage_options)
        return cls(opened._rows, opened._opened.is_pinned)

    def read(
        self,
        columns: list[str] | None,
        condition: str | None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        batch_rows: int | None = None,
        threads: int | None = None,
        view_types: bool = True,
    ) -> _internal.ArrowStream:
        """Returns the rows for which the condition is true. By default strings have the Arrow type `string_view`."""
        pinned = self.is_pinned
        return self.snapshot.scan(
            columns, condition, False, view_types, pinned, limit, ordered, batch_rows, threads
        )

    def empty(self, *, view_types: bool = True) -> _internal.ArrowStream:
        """Returns a stream without rows that has the schema of the table. Does not list files."""
        return self.read(None, None, limit=0, view_types=view_types)

    def understands(self, condition: str) -> bool:
        """Returns whether the scan can evaluate a condition. Does not list files."""
        try:
            self.read([], condition, limit=0)
        except (InvalidArgumentError, UnsupportedFeatureError):
            return False
        return True


def column(*parts: str) -> str:
    """Returns the SQL for a column, or for a field of a struct, which is given by its path."""
    return ".".join(map(quoted, parts))


def literal(value: Any) -> str:
    """Returns a value as an SQL literal. Raises `NotTranslated` if no literal has exactly this value, such as for NaN
    and NULL.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise NotTranslated
    if isinstance(value, (bool, int, float, str, bytes, date, datetime, Decimal)):
        return value_as_sql(value, None, "")
    raise NotTranslated


def flat(node: _Node, parts: Callable[[_Node], tuple[_Node, _Node] | None]) -> list[_Node]:
    """Returns the operands of nested ANDs (or ORs), from left to right.

    Without this, the SQL of a long chain would have more nested parentheses than the core accepts.

    Args:
        node: the root of the expression.
        parts: returns the two sides of a node that is such an AND (or OR), and None for any other node.
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


def both(first: str | None, second: str | None) -> str | None:
    """Returns the condition that is true where both conditions are true. None means that a condition is always true."""
    return " AND ".join(f"({condition})" for condition in (first, second) if condition is not None) or None


def translated(
    conjuncts: Iterable[_Node], sql: Callable[[_Node], str], rows: Rows
) -> tuple[str | None, list[_Node]]:
    """Returns the SQL for the conjuncts that the scan can evaluate, and the list of the other conjuncts.

    A conjunct of an unknown form is not an error; it is added to the list.
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
