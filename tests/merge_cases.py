"""Defines the semantics of MERGE by a list of cases, which both deltalog and the JVM connector run."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

COLUMNS = "id LONG, s STRING, n INT"
ROWS = "(1L, 'a', 10), (2L, 'b', 20), (3L, NULL, 30), (NULL, 'n', 40)"
"""The rows that the target has in most cases."""

A = (1, "a", 10)
B = (2, "b", 20)
C = (3, None, 30)
N = (None, "n", 40)

SEVERAL = "MULTIPLE_SOURCE_ROW_MATCHING|MERGE_CARDINALITY_VIOLATION"
"""The errors of the JVM connector and of Spark for a row with several matches."""
LACKS = r"CAST_WITHOUT_SUGGESTION|Cannot cast struct<a:int> to struct<a:int,b:int>"
"""The errors of Spark and of the JVM connector for a struct that lacks a field of its column."""
NONDETERMINISTIC = "(?i)non.?deterministic"


class Case(NamedTuple):
    """A MERGE of the source `s` into the target `t`, with the expected rows or the expected error."""

    source: str
    clauses: str
    expected: list[tuple[object, ...]] | str
    on: str = "t.id = s.id"
    columns: str = COLUMNS
    rows: str = ROWS


def values(columns: str, *rows: str) -> str:
    return f"(SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS v({columns}))"


ONE = values("id, s, n", "1L, 'x', 100", "9L, 'z', 900")
TWICE = values("id, s, n", "1L, 'x', 100", "1L, 'y', 200", "9L, 'z', 900")
EMPTY = "(SELECT 1L AS id, 'x' AS s, 1 AS n WHERE false)"
UPDATE = "WHEN MATCHED THEN UPDATE SET *"
DELETE = "WHEN MATCHED THEN DELETE"
INSERT = "WHEN NOT MATCHED THEN INSERT *"
ALONE = "WHEN NOT MATCHED BY SOURCE THEN"
X = (1, "x", 100)
Z = (9, "z", 900)

CASES: dict[str, Case] = {
    # Cases about clauses.
    "update": Case(ONE, UPDATE, [X, B, C, N]),
    "update and insert": Case(ONE, f"{UPDATE} {INSERT}", [X, B, C, N, Z]),
    "delete": Case(ONE, DELETE, [B, C, N]),
    "delete and insert": Case(ONE, f"{DELETE} {INSERT}", [B, C, N, Z]),
    "insert": Case(ONE, INSERT, [A, B, C, N, Z]),
    "insert some columns": Case(
        ONE, "WHEN NOT MATCHED THEN INSERT (n, id) VALUES (s.n + 1, s.id)", [A, B, C, N, (9, None, 901)]
    ),
    "by source: delete": Case(ONE, f"{ALONE} DELETE", [A]),
    "by source: update": Case(
        ONE, f"{ALONE} UPDATE SET s = 'alone'", [A, (2, "alone", 20), (3, "alone", 30), (None, "alone", 40)]
    ),
    "by source: conditions": Case(
        ONE,
        f"WHEN NOT MATCHED BY SOURCE AND t.n > 30 THEN DELETE {ALONE} UPDATE SET n = t.n + 1",
        [A, (2, "b", 21), (3, None, 31)],
    ),
    "all clauses": Case(
        values("id, s, n", "1L, 'x', 100", "2L, 'y', 200", "8L, 'w', 800", "9L, 'z', 900"),
        "WHEN MATCHED AND s.n > 150 THEN DELETE WHEN MATCHED THEN UPDATE SET s = concat(t.s, s.s) "
        "WHEN NOT MATCHED AND s.n = 800 THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.s IS NULL THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 0",
        [(1, "ax", 10), (8, None, None), Z, (None, "n", 0)],
    ),
    "the first clause counts": Case(
        ONE,
        "WHEN MATCHED AND t.n = 10 THEN UPDATE SET n = 1 WHEN MATCHED AND t.s = 'a' THEN DELETE",
        [(1, "a", 1), B, C, N],
    ),
    "a condition that is NULL is not met": Case(
        ONE,
        "WHEN MATCHED AND CAST(NULL AS BOOLEAN) THEN DELETE WHEN MATCHED AND s.n > NULL THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET n = 1",
        [(1, "a", 1), B, C, N],
    ),
    "values see the old row": Case(
        ONE, "WHEN MATCHED THEN UPDATE SET s = CAST(t.n AS STRING), n = length(t.s)", [(1, "10", 1), B, C, N]
    ),
    "names in another case": Case(
        ONE, "WHEN MATCHED THEN UPDATE SET T.S = S.S, N = 7", [(1, "x", 7), B, C, N]
    ),
    # Cases about several matches.
    "several: update": Case(TWICE, UPDATE, SEVERAL),
    "several: update of one": Case(TWICE, "WHEN MATCHED AND s.s = 'x' THEN UPDATE SET *", SEVERAL),
    "several: update of none": Case(TWICE, "WHEN MATCHED AND s.s = 'no' THEN UPDATE SET *", SEVERAL),
    "several: delete": Case(TWICE, DELETE, [B, C, N]),
    "several: delete with a condition": Case(TWICE, "WHEN MATCHED AND s.s = 'x' THEN DELETE", SEVERAL),
    "several: delete if true": Case(TWICE, "WHEN MATCHED AND true THEN DELETE", SEVERAL),
    "several: two deletes": Case(TWICE, f"WHEN MATCHED AND s.s = 'x' THEN DELETE {DELETE}", SEVERAL),
    "several: delete and insert": Case(TWICE, f"{DELETE} {INSERT}", [B, C, N, Z]),
    "several: delete, and by source": Case(
        TWICE, f"{DELETE} {ALONE} UPDATE SET n = 0", [(2, "b", 0), (3, None, 0), (None, "n", 0)]
    ),
    "several: insert": Case(TWICE, INSERT, [A, B, C, N, Z]),
    "several: by source": Case(TWICE, f"{ALONE} DELETE", SEVERAL),
    "several: insert, and by source": Case(TWICE, f"{INSERT} {ALONE} DELETE", SEVERAL),
    "several rows without a match are all inserted": Case(
        values("id, s, n", "9L, 'z', 900", "9L, 'z', 900"), INSERT, [A, B, C, N, Z, Z]
    ),
    # Cases about keys.
    "NULL matches nothing": Case(
        values("id, s, n", "CAST(NULL AS LONG), 'x', 1"), f"{UPDATE} {INSERT}", [A, B, C, N, (None, "x", 1)]
    ),
    "NULL matches by <=>": Case(
        values("id, s, n", "CAST(NULL AS LONG), 'x', 1"),
        f"{UPDATE} {INSERT}",
        [A, B, C, (None, "x", 1)],
        on="t.id <=> s.id",
    ),
    "a condition without an equality": Case(
        values("id, s, n", "3L, 'x', 1"),
        "WHEN MATCHED THEN UPDATE SET n = s.n",
        [(1, "a", 1), (2, "b", 1), C, N],
        on="t.id < s.id",
    ),
    "a condition that is always true": Case(values("id, s, n", "3L, 'x', 1"), DELETE, [], on="true"),
    "a condition that is never true": Case(ONE, f"{UPDATE} {INSERT}", [A, B, C, N, X, Z], on="false"),
    "parts that look at one table": Case(
        ONE,
        f"{UPDATE} {INSERT}",
        [A, B, C, N, X, Z],
        on="t.id = s.id AND t.n > 10 AND s.n < 500",
    ),
    "a key with another type": Case(
        values("id, s, n", "CAST(1 AS SMALLINT), 'x', 100"), UPDATE, [X, B, C, N]
    ),
    "a key that is computed": Case(
        ONE, "WHEN MATCHED THEN UPDATE SET n = 5", [A, (2, "b", 5), C, N], on="t.id - 1 = s.id"
    ),
    "two keys": Case(
        values("id, s, n", "1L, 'a', 1", "2L, 'other', 2"),
        f"{UPDATE} {INSERT}",
        [(1, "a", 1), B, C, N, (2, "other", 2)],
        on="t.id = s.id AND t.s = s.s",
    ),
    # Cases about tables.
    "an empty source": Case(EMPTY, f"{UPDATE} {INSERT}", [A, B, C, N]),
    "an empty source, by source": Case(EMPTY, f"{UPDATE} {ALONE} DELETE", []),
    "an empty target": Case(ONE, f"{UPDATE} {INSERT}", [X, Z], rows=""),
    "an empty target, by source": Case(ONE, f"{INSERT} {ALONE} DELETE", [X, Z], rows=""),
    "the target as source": Case(
        "(SELECT id + 1 AS id, s, n FROM {t})",
        f"{UPDATE} {INSERT}",
        [A, (2, "a", 10), (3, "b", 20), N, (4, None, 30), (None, "n", 40)],
    ),
    "a range": Case(
        "(SELECT * FROM range(2, 5))",
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        [A, N, (4, None, None)],
    ),
    "a list of values": Case(
        "(VALUES (1L, 'x'), (5L, 'y') AS v(id, s))",
        "WHEN MATCHED THEN UPDATE SET s = s.s",
        [(1, "x", 10), B, C, N],
    ),
    "a common table expression": Case(
        "(WITH c AS (SELECT 1L AS id, 'x' AS s, 100 AS n) SELECT * FROM c)", UPDATE, [X, B, C, N]
    ),
    "a source with more columns": Case(
        values("extra, n, s, id", "0, 100, 'x', 1L"), f"{UPDATE} {INSERT}", [X, B, C, N]
    ),
    "a source that lacks a column": Case(
        values("id, s", "1L, 'x'"), UPDATE, "(?i)cannot (be )?resolve|UNRESOLVED"
    ),
    "ordered rows": Case(
        "(SELECT * FROM VALUES (1L, 'x', 100), (9L, 'z', 900) AS v(id, s, n) ORDER BY n LIMIT 1)",
        f"{UPDATE} {INSERT}",
        [X, B, C, N],
    ),
    "a subquery as value": Case(
        ONE, "WHEN MATCHED THEN UPDATE SET n = (SELECT max(id) FROM range(5))", [(1, "a", 4), B, C, N]
    ),
    "a subquery as condition": Case(
        ONE,
        "WHEN MATCHED AND EXISTS (SELECT 1 FROM range(5) r WHERE r.id = t.id) THEN DELETE "
        "WHEN NOT MATCHED AND s.id IN (SELECT id FROM range(10)) THEN INSERT *",
        [B, C, N, Z],
    ),
    "a correlated subquery as value": Case(
        ONE,
        "WHEN MATCHED THEN UPDATE SET n = (SELECT max(id) FROM range(7) r WHERE r.id <= t.id) "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, (SELECT min(id) FROM range(70) r WHERE r.id > s.id))",
        [(1, "a", 1), B, C, N, (9, None, 10)],
    ),
    "a subquery in ON": Case(
        ONE, f"{UPDATE} {INSERT}", [X, B, C, N, Z], on="t.id = s.id AND t.id IN (SELECT id FROM range(5))"
    ),
    "a subquery over the target": Case(
        ONE,
        "WHEN MATCHED AND t.n < (SELECT max(n) FROM {t}) THEN UPDATE SET n = (SELECT sum(n) FROM {t}) "
        "WHEN NOT MATCHED AND s.id NOT IN (SELECT id FROM {t} WHERE id IS NOT NULL) THEN INSERT *",
        [(1, "a", 100), B, C, N, Z],
    ),
    "by source: a subquery": Case(
        ONE,
        "WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 FROM range(3) r WHERE r.id = t.id) THEN DELETE",
        [A, C, N],
    ),
    "a nondeterministic condition": Case(ONE, "WHEN MATCHED AND rand() < 2 THEN DELETE", NONDETERMINISTIC),
    "a nondeterministic ON": Case(ONE, DELETE, NONDETERMINISTIC, on="t.id = s.id AND rand() < 2"),
    "a column that is assigned twice": Case(
        ONE, "WHEN MATCHED THEN UPDATE SET n = 1, N = 2", "(?i)conflict|multiple assignments"
    ),
    "only the last clause of a kind may lack a condition": Case(
        ONE, f"{DELETE} {UPDATE}", "(?i)last.*(MATCHED|clause)|NON_LAST_MATCHED"
    ),
    # Cases about the types of keys.
    "floats: NaN equals itself, and so do zeros": Case(
        values("k, v", "CAST('NaN' AS DOUBLE), 1", "0.0D, 2"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("nan", 1), ("-0.0", 2), ("1.5", 0)],
        on="t.k = s.k",
        columns="k DOUBLE, v INT",
        rows="(CAST('NaN' AS DOUBLE), 0), (-0.0D, 0), (1.5D, 0)",
    ),
    "decimals": Case(
        values("k, v", "1.50BD, 1"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("1.500", 1), ("2.000", 0)],
        on="t.k = s.k",
        columns="k DECIMAL(20, 3), v INT",
        rows="(1.5BD, 0), (2BD, 0)",
    ),
    "timestamps": Case(
        values("k, v", "TIMESTAMP '2024-01-01 00:00:00.000001+00:00', 1"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("1704067200000000", 0), ("1704067200000001", 1)],
        on="t.k = s.k",
        columns="k TIMESTAMP, v INT",
        rows="(TIMESTAMP '2024-01-01 00:00:00+00:00', 0), (TIMESTAMP '2024-01-01 00:00:00.000001+00:00', 0)",
    ),
    "dates": Case(
        values("k, v", "DATE '2024-01-01', 1"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("2024-01-01", 1), ("2024-01-02", 0)],
        on="t.k = s.k",
        columns="k DATE, v INT",
        rows="(DATE '2024-01-01', 0), (DATE '2024-01-02', 0)",
    ),
    "bytes": Case(
        values("k, v", "X'00FF', 1"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("00", 0), ("00FF", 1)],
        on="t.k = s.k",
        columns="k BINARY, v INT",
        rows="(X'00', 0), (X'00FF', 0)",
    ),
    "strings with spaces at the end": Case(
        values("k, v", "'a ', 1"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("a", 0), ("a ", 1)],
        on="t.k = s.k",
        columns="k STRING, v INT",
        rows="('a', 0), ('a ', 0)",
    ),
    "booleans": Case(
        values("k, v", "true, 1"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("false", 0), ("true", 1)],
        on="t.k = s.k",
        columns="k BOOLEAN, v INT",
        rows="(true, 0), (false, 0)",
    ),
    "structs": Case(
        values("k, v", "named_struct('a', 1, 'b', 'x'), 1"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [("{1, x}", 1), ("{2, x}", 0)],
        on="t.k = s.k",
        columns="k STRUCT<a: INT, b: STRING>, v INT",
        rows="(named_struct('a', 1, 'b', 'x'), 0), (named_struct('a', 2, 'b', 'x'), 0)",
    ),
    # Cases about fields.
    "a field": Case(
        values("k, v", "1, 5"),
        "WHEN MATCHED THEN UPDATE SET st.b = s.v",
        [("1", "{1, 5}"), ("2", "{2, 0}")],
        on="t.k = s.k",
        columns="k INT, st STRUCT<a: INT, b: INT>",
        rows="(1, named_struct('a', 1, 'b', 0)), (2, named_struct('a', 2, 'b', 0))",
    ),
    "a struct that lacks a field": Case(
        values("k, st", "1, named_struct('a', 5)"),
        UPDATE,
        LACKS,
        on="t.k = s.k",
        columns="k INT, st STRUCT<a: INT, b: INT>",
        rows="(1, named_struct('a', 1, 'b', 2))",
    ),
    "a new struct that lacks a field": Case(
        values("k, st", "2, named_struct('a', 5)"),
        INSERT,
        LACKS,
        on="t.k = s.k",
        columns="k INT, st STRUCT<a: INT, b: INT>",
        rows="(1, named_struct('a', 1, 'b', 2))",
    ),
    "a struct that lacks a field, in an array in a map": Case(
        values("k, st", "1, map('m', array(named_struct('a', 5)))"),
        "WHEN MATCHED THEN UPDATE SET st = s.st WHEN NOT MATCHED THEN INSERT (k, st) VALUES (s.k, s.st)",
        LACKS,
        on="t.k = s.k",
        columns="k INT, st MAP<STRING, ARRAY<STRUCT<a: INT, b: INT>>>",
        rows="(1, map('m', array(named_struct('a', 1, 'b', 2))))",
    ),
    "digits of a decimal are rounded": Case(
        values("k, v", "1, 2.5001BD", "2, 0.0050BD"),
        f"{UPDATE} {INSERT}",
        [("1", Decimal("2.50")), ("2", Decimal("0.01"))],
        on="t.k = s.k",
        columns="k INT, v DECIMAL(10, 2)",
        rows="(1, 1.00)",
    ),
    "a struct by the names of its fields": Case(
        values("k, st", "1, named_struct('b', 5, 'a', 6)", "3, named_struct('b', 7, 'a', 8)"),
        f"{UPDATE} {INSERT}",
        [("1", "{6, 5}"), ("2", "{2, 0}"), ("3", "{8, 7}")],
        on="t.k = s.k",
        columns="k INT, st STRUCT<a: INT, b: INT>",
        rows="(1, named_struct('a', 1, 'b', 0)), (2, named_struct('a', 2, 'b', 0))",
    ),
}


def statement(case: Case, table: str) -> str:
    text = f"MERGE INTO {{t}} t USING {case.source} s ON {case.on} {case.clauses}"
    return text.replace("{t}", table)


def content(case: Case, table: str) -> str:
    """Returns a query that gives the rows in a form that can be compared."""
    if case.columns == COLUMNS:
        return f"SELECT * FROM {table}"
    shown = {
        "k BINARY": "hex(k)",
        "k TIMESTAMP": "CAST(unix_micros(k) AS STRING)",
        "k DOUBLE": "lower(CAST(k AS STRING))",
    }
    key = next((text for start, text in shown.items() if case.columns.startswith(start)), "CAST(k AS STRING)")
    other = "CAST(st AS STRING)" if "st STRUCT" in case.columns else "v"
    return f"SELECT {key}, {other} FROM {table}"
