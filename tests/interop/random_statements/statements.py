"""Draws random SQL statements on a table, in which `{table}` stands for the table's name."""

from __future__ import annotations

import random
from collections.abc import Mapping

from tests.interop.random_statements.tables import ARRAY, STRUCT, RandomTable, draw_literal

Scope = Mapping[str, str]
"""Columns that a statement can use, by the names that it must use for them, with their types."""


def draw_statement(rng: random.Random, table: RandomTable) -> str:
    kinds = [
        draw_delete,
        draw_update,
        draw_update,
        draw_merge,
        draw_merge,
        draw_merge,
        draw_insert,
        draw_replacement,
    ]
    return rng.choice(kinds)(rng, table)


def draw_insert(rng: random.Random, table: RandomTable) -> str:
    rows = draw_rows(rng, table, rng.randrange(1, 9))
    if rng.random() < 0.3:
        names = rng.sample(list(table.columns), rng.randrange(1, len(table.columns) + 1))
        return f"INSERT INTO {{table}} ({', '.join(names)}) SELECT {', '.join(names)} FROM {rows}"
    return f"INSERT INTO {{table}} SELECT * FROM {rows}"


def draw_replacement(rng: random.Random, table: RandomTable) -> str:
    """Draws an overwrite of the rows that match a condition. Some of the new rows may not match it."""
    column = rng.choice([name for name, kind in table.columns.items() if kind not in (STRUCT, ARRAY)])
    condition = f"{column} = {draw_literal(rng, table.columns[column], 0)}"
    rows = draw_rows(rng, table, rng.randrange(4))
    met = "" if rng.random() < 0.1 else f" WHERE {condition}"
    return f"INSERT INTO {{table}} REPLACE WHERE {condition} SELECT * FROM {rows}{met}"


def draw_rows(rng: random.Random, table: RandomTable, count: int) -> str:
    """Draws rows with the table's columns. Some rows occur twice."""
    rows = [[draw_literal(rng, kind) for kind in table.columns.values()] for _ in range(max(count, 1))]
    if count > 2 and rng.random() < 0.3:
        rows.append(rng.choice(rows))
    selects = [
        ", ".join(f"{value} AS {name}" for name, value in zip(table.columns, row, strict=True))
        for row in rows
    ]
    limited = " WHERE false" if count == 0 else ""
    return "(" + " UNION ALL ".join(f"SELECT {select}{limited}" for select in selects) + ")"


def draw_delete(rng: random.Random, table: RandomTable) -> str:
    where = "" if rng.random() < 0.05 else f" WHERE {draw_condition(rng, table.columns)}"
    return f"DELETE FROM {{table}}{where}"


def draw_update(rng: random.Random, table: RandomTable) -> str:
    where = "" if rng.random() < 0.1 else f" WHERE {draw_condition(rng, table.columns)}"
    return f"UPDATE {{table}} SET {draw_assignments(rng, table, '', table.columns)}{where}"


def draw_merge(rng: random.Random, table: RandomTable) -> str:
    target = {f"t.{name}": kind for name, kind in table.columns.items()}
    source = {f"s.{name}": kind for name, kind in table.columns.items()}
    both = {**target, **source}
    text = f"MERGE INTO {{table}} t USING {draw_rows(rng, table, rng.randrange(7))} s ON {_match(rng, target, source)}"
    counts = [rng.choice([0, 1, 1, 2]), rng.choice([0, 1, 1, 2]), rng.choice([0, 0, 1, 2])]
    if not any(counts):
        counts[0] = 1
    for when, count, scope in zip(
        ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"), counts, (both, source, target), strict=True
    ):
        for number in range(count):
            # Only the last clause may be without a condition.
            bare = number == count - 1 and rng.random() < 0.6
            condition = "" if bare else f" AND {draw_condition(rng, scope)}"
            text += f" WHEN {when}{condition} THEN {_action(rng, table, when, scope)}"
    return text


def _match(rng: random.Random, target: Scope, source: Scope) -> str:
    choices = [
        "t.k = s.k",
        "t.k = s.k",
        "s.k <=> t.k",
        "t.k = s.k AND t.p = s.p",
        f"t.k = s.k AND {draw_condition(rng, target, 1)}",
        f"t.k = s.k AND {draw_condition(rng, source, 1)}",
        "t.v < s.v",
        "t.p = s.p AND t.v = s.v + 1",
        "upper(t.s) = s.s",
        "false",
    ]
    return rng.choice(choices)


def _action(rng: random.Random, table: RandomTable, when: str, scope: Scope) -> str:
    if when == "NOT MATCHED":
        if rng.random() < 0.5:
            return "INSERT *"
        names = rng.sample(list(table.columns), rng.randrange(1, len(table.columns) + 1))
        values = [draw_value(rng, table.columns[name], scope) for name in names]
        return f"INSERT ({', '.join(names)}) VALUES ({', '.join(values)})"
    if rng.random() < 0.35:
        return "DELETE"
    if when == "MATCHED" and rng.random() < 0.3:
        return "UPDATE SET *"
    return f"UPDATE SET {draw_assignments(rng, table, 't.', scope)}"


def draw_assignments(rng: random.Random, table: RandomTable, prefix: str, scope: Scope) -> str:
    names = rng.sample(list(table.columns), rng.randrange(1, 4))
    assigned = []
    for name in names:
        kind = table.columns[name]
        if kind == STRUCT and rng.random() < 0.5:
            assigned.append(f"{prefix}{name}.a = {draw_value(rng, 'INT', scope)}")
        else:
            assigned.append(f"{prefix}{name} = {draw_value(rng, kind, scope)}")
    return ", ".join(assigned)


def draw_value(rng: random.Random, kind: str, scope: Scope) -> str:
    """Draws an expression of the type that uses the columns in scope."""
    same = [name for name, other in scope.items() if other == kind]
    chance = rng.random()
    if chance < 0.35 or not same:
        return draw_literal(rng, kind)
    column = rng.choice(same)
    if chance < 0.5:
        return column
    if chance < 0.6:
        return f"CASE WHEN {draw_condition(rng, scope, 1)} THEN {column} ELSE {draw_literal(rng, kind)} END"
    computed = {
        "BIGINT": f"{column} + 1L",
        "INT": f"{column} * 2",
        "STRING": f"concat({column}, 'x')",
        "DATE": f"date_add({column}, 1)",
        "DECIMAL(10,2)": f"CAST({column} - 1 AS DECIMAL(10,2))",
        "TIMESTAMP": f"{column} + INTERVAL 1 DAY",
        "DOUBLE": f"-{column}",
        "BOOLEAN": f"NOT {column}",
        STRUCT: f"named_struct('b', {column}.b, 'a', {column}.a + 1)",
        ARRAY: f"array_append({column}, 5)",
    }
    return computed[kind]


def draw_condition(rng: random.Random, scope: Scope, depth: int = 2) -> str:
    if depth > 0 and rng.random() < 0.35:
        left, right = draw_condition(rng, scope, depth - 1), draw_condition(rng, scope, depth - 1)
        return rng.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
    column = rng.choice(list(scope))
    kind = scope[column]
    if rng.random() < 0.15:
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == STRUCT:
        return (
            f"{column}.{rng.choice(['a > 0', 'a = 1', 'b IS NULL', 'b < ' + draw_literal(rng, 'STRING', 0)])}"
        )
    if kind == ARRAY:
        return rng.choice([f"size({column}) > 1", f"array_contains({column}, 2)"])
    others = [name for name, other in scope.items() if other == kind and name != column]
    if others and rng.random() < 0.2:
        return f"{column} {rng.choice(['=', '<', '<=>'])} {rng.choice(others)}"
    literal = draw_literal(rng, kind, 0.05)
    choices = [f"{column} {operator} {literal}" for operator in ("=", "=", "<", ">=", "<>", "<=>")]
    choices.append(f"{column} IN ({literal}, {draw_literal(rng, kind)})")
    if kind == "STRING":
        choices.append(f"{column} LIKE 'a%'")
    return rng.choice(choices)
