"""Draws random tables, and literals for their columns. Each type has only a few literals, so that keys often match."""

from __future__ import annotations

import random
from dataclasses import dataclass

VECTORS = "delta.enableDeletionVectors"
FEED = "delta.enableChangeDataFeed"

# Literals by type. Some strings differ only at their ends. Some values are equal but not identical.
POOLS: dict[str, list[str]] = {
    "BIGINT": ["-1L", "0L", "1L", "2L", "3L", "7L", "9223372036854775807L"],
    "INT": ["-1", "0", "1", "2", "3", "7"],
    "STRING": ["''", "'a'", "'A'", "'a '", "'b'", "'é/%'", "'__HIVE_DEFAULT_PARTITION__'"],
    "DATE": ["DATE '1969-12-31'", "DATE '1970-01-01'", "DATE '2024-02-29'", "DATE '2024-03-01'"],
    "DECIMAL(10,2)": ["-1.50BD", "0.00BD", "0.01BD", "1.00BD", "99999999.99BD"],
    "TIMESTAMP": [
        "TIMESTAMP '1969-12-31 23:59:59.999999'",
        "TIMESTAMP '1970-01-01 00:00:00'",
        "TIMESTAMP '2024-02-29 12:30:00.000001'",
        "TIMESTAMP '2024-02-29 12:30:00.001'",
    ],
    "DOUBLE": ["-0.0D", "0.0D", "1.5D", "double('NaN')", "double('Infinity')", "-2.5D"],
    "BOOLEAN": ["true", "false"],
}
STRUCT = "STRUCT<a: INT, b: STRING>"
ARRAY = "ARRAY<INT>"
KEYS = list(POOLS)
PARTITIONS = ["INT", "STRING", "DATE", "BIGINT", "TIMESTAMP", "DECIMAL(10,2)", "BOOLEAN"]


@dataclass(frozen=True)
class RandomTable:
    """The definition of a table: its columns with their types, its partition columns, and its properties."""

    columns: dict[str, str]
    partition_by: list[str]
    properties: dict[str, str]

    def create(self, table: str) -> str:
        """Returns the statement that creates the table."""
        columns = ", ".join(f"`{name}` {kind}" for name, kind in self.columns.items())
        partitioned = f" PARTITIONED BY ({', '.join(self.partition_by)})" if self.partition_by else ""
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in self.properties.items())
        return f"CREATE TABLE {table} ({columns}) USING deltalog{partitioned} TBLPROPERTIES ({properties})"


def draw_table(rng: random.Random) -> RandomTable:
    columns = {"k": rng.choice(KEYS), "p": rng.choice(PARTITIONS), "v": "BIGINT", "s": "STRING"}
    if rng.random() < 0.7:
        columns |= {"st": STRUCT, "arr": ARRAY}
    if rng.random() < 0.3:
        # Partition columns need not be the last columns.
        columns = {"p": columns.pop("p"), **columns}
    partition_by = rng.choice([[], ["p"], ["p"], ["p", "v"]])
    properties = {VECTORS: rng.choice(["true", "false"]), FEED: rng.choice(["true", "true", "false"])}
    if rng.random() < 0.4:
        properties["delta.columnMapping.mode"] = "name"
    if rng.random() < 0.25:
        properties["delta.enableRowTracking"] = "true"
    return RandomTable(columns, partition_by, properties)


def draw_literal(rng: random.Random, kind: str, nulls: float = 0.15) -> str:
    """Draws a literal of the type, which is NULL with the probability `nulls`."""
    if rng.random() < nulls:
        return f"CAST(NULL AS {kind})"
    if kind == STRUCT:
        return f"named_struct('a', {draw_literal(rng, 'INT')}, 'b', {draw_literal(rng, 'STRING')})"
    if kind == ARRAY:
        return (
            f"CAST(array({', '.join(draw_literal(rng, 'INT') for _ in range(rng.randrange(3)))}) AS {ARRAY})"
        )
    return rng.choice(POOLS[kind])
