"""Computes the expected content of a table without any Delta code."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.interop.histories.values import draw, draw_partition_value

Row = dict[str, Any]


@dataclass(frozen=True)
class Predicate:
    """A condition that every engine evaluates in the same way, with a Python function that evaluates it."""

    columns: tuple[str, ...]
    # The condition in SQL, with `{0}` and `{1}` in place of the quoted column names.
    template: str
    holds: Callable[[Row], bool]

    def sql(self, quote: Callable[[str], str]) -> str:
        return self.template.format(*map(quote, self.columns))

    def __repr__(self) -> str:
        return self.sql(lambda name: f"`{name}`")


@dataclass(frozen=True)
class Model:
    """The state of a table.

    - `id` is a column of each table. It is unique and never NULL; predicates use it and the partition columns.
    - An empty string as a partition value is read as NULL (protocol: "Partition Value Serialization").
    """

    table: pa.Table
    partition_by: tuple[str, ...]
    properties: dict[str, str]
    # The clustering columns. There are none if `may_cluster` is False: a writer of the table does not support
    # clustering, or the table has partition columns.
    clustered_by: tuple[str, ...] = ()
    may_cluster: bool = False
    constraints: dict[str, str] = field(default_factory=dict)
    applications: dict[str, int] = field(default_factory=dict)
    next_id: int = 0
    # The number of names that were used so far. Each new name contains it, so that it is unique.
    names: int = 0
    # The versions that can be restored, each with its state.
    retained: tuple[tuple[int, Model], ...] = ()
    # Whether log files were made to look so old that they have expired.
    is_aged: bool = False

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def is_mapped(self) -> bool:
        return self.properties.get("delta.columnMapping.mode", "none") != "none"

    def has(self, name: str) -> bool:
        """Returns whether a property that enables a feature is set."""
        return self.properties.get(name) == "true"

    def draw_rows(
        self, rng: random.Random, count: int, schema: pa.Schema | None = None, where: Predicate | None = None
    ) -> pa.Table:
        """Draws rows with new ids, and returns the ones that match `where`."""
        schema = schema or self.schema
        found = []
        for number in range(count):
            row = {
                column.name: (draw_partition_value if column.name in self.partition_by else draw)(
                    rng, column.type
                )
                for column in schema
            }
            found.append({**row, "id": self.next_id + number})
        table = self.stored(pa.Table.from_pylist(found, schema=schema))
        return table if where is None else _choose(table, where.holds)

    def stored(self, rows: pa.Table) -> pa.Table:
        """Returns the rows as they are read back from a table."""
        for name in self.partition_by:
            column = rows.column(name)
            if pa.types.is_string(column.type):
                known = [text or None for text in column.to_pylist()]
                place = rows.schema.get_field_index(name)
                rows = rows.set_column(place, rows.schema.field(name), pa.array(known, column.type))
        return rows

    def with_rows(self, kept: pa.Table, new: pa.Table | None = None) -> Model:
        tables = [kept] if new is None else [kept, new]
        ids = [pc.max(table.column("id")).as_py() for table in tables]
        top = max([number + 1 for number in ids if number is not None], default=0)
        return replace(self, table=pa.concat_tables(tables), next_id=max(self.next_id, top))

    def without(self, holds: Callable[[Row], bool]) -> pa.Table:
        return _choose(self.table, lambda row: not holds(row))

    def partition_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.partition_by)


def _choose(table: pa.Table, holds: Callable[[Row], bool]) -> pa.Table:
    # Rows are selected by their numbers, so values are converted to Python only to evaluate conditions.
    numbers = [number for number, row in enumerate(table.to_pylist()) if holds(row)]
    return table.take(pa.array(numbers, pa.int64()))
