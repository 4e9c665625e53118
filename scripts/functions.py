"""Writes FUNCTIONS.md: every operator and function of conditions and values, with an example and its result.

The results come from the built package. `--check` only compares the page with them.
"""

import sys
import textwrap
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from deltalog import _internal

PAGE = Path(__file__).parents[1] / "FUNCTIONS.md"

START = """\
# Operators and functions

Conditions (`delete`, `update`, `merge`, filters, CHECK constraints) and values (assignments, generated columns, default
values) are written in Spark's SQL. Types and results are Spark's in ANSI mode: what overflows, what is divided by zero
and what cannot be cast is an error, not NULL. Texts are in single quotes, names of columns in backticks where they need
quotes. Dates and times without a zone are in the time zone of the session: UTC in Python. Dates, timestamps and texts
are compared as the type that they have in common, so that `at > '2024-01'` and `at >= DATE '2024-01-01'` skip files.

This page is written by `scripts/functions.py`, which has run every example.
"""

FURTHER = """\
## Tables of others in Spark

Generated columns, default values, constraints and invariants of a table may have been written by others. In Spark they
may read columns of the table and call the functions of this page, without random values, and those below: built-in
functions of Spark that see nothing but their arguments. Default values and constraints may use the time of the
statement. All else fails the write: subqueries, windows, aggregates, functions and variables of the session, `reflect`,
`input_file_name`, `current_user` and the like. `${name}` is a text like any other.
"""

SECTIONS: list[tuple[str, str, list[tuple[str, str]]]] = [
    (
        "Literals and casts",
        "",
        [
            ("`1`, `1L`, `1S`, `1Y`, `1.5`, `1.5D`, `1.5F`", "1.5D + 1L"),
            ("`'text'`, `X'hex'`, `TRUE`, `NULL`", r"'it\'s'"),
            ("`DATE '…'`, `TIMESTAMP '…'`, `TIMESTAMP_NTZ '…'`", "DATE '2024-02-29'"),
            ("`CAST(value AS type)`, `value::type`", "'12'::INT"),
            ("`TRY_CAST(value AS type)`, NULL where a cast would fail", "TRY_CAST('x' AS INT)"),
            ("`INTERVAL n unit …`, only to be added and subtracted", "DATE '2024-01-31' + INTERVAL 1 MONTH"),
        ],
    ),
    (
        "Conditions",
        "",
        [
            ("`=`, `<>`, `!=`, `<`, `<=`, `>`, `>=`", "2 <> 3"),
            ("`a <=> b`, equal or both NULL", "NULL <=> 1"),
            ("`AND`, `OR`, `NOT`, `!`", "NOT (TRUE AND FALSE)"),
            ("`a [NOT] IN (b, …)`", "3 IN (1, 2)"),
            ("`a [NOT] BETWEEN b AND c`", "2 BETWEEN 1 AND 3"),
            ("`a [NOT] LIKE pattern [ESCAPE c]`", "'data' LIKE 'd_t%'"),
            ("`a [NOT] ILIKE pattern [ESCAPE c]`, ignoring case", "'Data' ILIKE 'd%'"),
            ("`a [NOT] RLIKE pattern`, `a [NOT] REGEXP pattern`", "'data' RLIKE '^d.*a$'"),
            ("`a IS [NOT] NULL`", "NULL IS NULL"),
            ("`a IS [NOT] TRUE`, `FALSE`, `UNKNOWN`", "NULL IS TRUE"),
            ("`a IS [NOT] DISTINCT FROM b`", "1 IS DISTINCT FROM NULL"),
            ("`isnull(a)`", "isnull(NULL)"),
            ("`isnotnull(a)`", "isnotnull(1)"),
            ("`isnan(a)`", "isnan(1.5D)"),
        ],
    ),
    (
        "Choices",
        "",
        [
            ("`CASE WHEN c THEN a … [ELSE b] END`", "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END"),
            ("`CASE x WHEN a THEN b … [ELSE c] END`", "CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END"),
            ("`if(c, a, b)`, `iff`", "if(1 < 2, 'yes', 'no')"),
            ("`coalesce(a, …)`", "coalesce(NULL, 'x')"),
            ("`nvl(a, b)`, `ifnull`", "nvl(NULL, 0)"),
            ("`nvl2(a, b, c)`: `b` unless `a` is NULL", "nvl2(1, 'some', 'none')"),
            ("`nullif(a, b)`: NULL if they are equal", "nullif(0, 0)"),
            ("`greatest(a, b, …)`", "greatest(1, 3, 2)"),
            ("`least(a, b, …)`", "least(1, 3, 2)"),
        ],
    ),
    (
        "Numbers",
        "",
        [
            ("`a + b`, `a - b`, `a * b`", "2 + 3 * 4"),
            ("`a / b`, never a whole number", "7 / 2"),
            ("`a DIV b`, `div(a, b)`", "7 DIV 2"),
            ("`a % b`, `mod(a, b)`, with the sign of `a`", "-7 % 3"),
            ("`pmod(a, b)`, with the sign of `b`", "pmod(-7, 3)"),
            ("`- a`, `negative(a)`", "negative(2)"),
            ("`a & b`, `a | b`, `a ^ b`, `~ a`", "6 & 3"),
            ("`abs(a)`", "abs(-2.5)"),
            ("`sign(a)`, `signum`", "sign(-3)"),
            ("`round(a[, digits])`, halves away from zero", "round(2.675, 2)"),
            ("`bround(a[, digits])`, halves to the even neighbor", "bround(2.5)"),
            ("`floor(a[, digits])`", "floor(-1.5)"),
            ("`ceil(a[, digits])`, `ceiling`", "ceil(1.234, 2)"),
            ("`sqrt(a)`", "sqrt(2)"),
            ("`cbrt(a)`", "cbrt(27)"),
            ("`power(a, b)`, `pow`", "power(2, 10)"),
            ("`exp(a)`", "exp(1)"),
            ("`ln(a)`, NULL unless `a > 0`", "ln(10)"),
            ("`log(base, a)`; `log(a)` is `ln(a)`", "log(2, 8)"),
            ("`log2(a)`", "log2(8)"),
            ("`log10(a)`", "log10(1000)"),
        ],
    ),
    (
        "Text and bytes",
        "The first character has the number 1.",
        [
            ("`a || b`, `concat(a, …)`", "'a' || 1"),
            ("`concat_ws(separator, a, …)`, without NULLs", "concat_ws('-', 'a', NULL, 'b')"),
            ("`upper(a)`, `ucase`", "upper('straße')"),
            ("`lower(a)`, `lcase`", "lower('ABC')"),
            ("`initcap(a)`: each word with a capital letter", "initcap('new yORK')"),
            ("`trim(a)`, `btrim`", "trim('  a ')"),
            ("`ltrim(a)`", "ltrim('  a')"),
            ("`rtrim(a)`", "rtrim('a  ')"),
            ("`length(a)`, `len`, `char_length`, `character_length`", "length('naïve')"),
            ("`octet_length(a)`", "octet_length('naïve')"),
            ("`substring(a, from[, length])`, `substr`", "substring('delta', 2, 3)"),
            ("`left(a, length)`", "left('delta', 2)"),
            ("`right(a, length)`", "right('delta', 2)"),
            ("`replace(a, search[, by])`", "replace('a-b', '-', '+')"),
            ("`translate(a, from, to)`", "translate('abc', 'ac', 'x')"),
            ("`contains(a, b)`", "contains('delta', 'elt')"),
            ("`startswith(a, b)`", "startswith('delta', 'de')"),
            ("`endswith(a, b)`", "endswith('delta', 'ta')"),
            ("`instr(a, b)`, 0 where it is missing", "instr('delta', 't')"),
            ("`reverse(a)`", "reverse('abc')"),
            ("`repeat(a, times)`", "repeat('ab', 2)"),
            ("`lpad(a, length[, pad])`", "lpad('7', 3, '0')"),
            ("`rpad(a, length[, pad])`", "rpad('7', 3, '.')"),
            ("`ascii(a)`", "ascii('A')"),
            ("`chr(a)`, `char`", "chr(65)"),
            ("`hex(a)`", "hex(255)"),
            ("`unhex(a)`", "unhex('414243')"),
            ("`md5(a)`", "md5('delta')"),
            ("`sha1(a)`, `sha`", "sha1('delta')"),
            ("`sha2(a, bits)`", "sha2('delta', 256)"),
            ("`crc32(a)`", "crc32('delta')"),
        ],
    ),
    (
        "Regular expressions",
        """\
In Java's syntax, and constant. Not supported, and refused: looking around, possessive and atomic parts, references to
groups in the pattern, `\\b`, classes in classes, and flags other than `(?i)` and `(?s)` at the beginning. In a text of
SQL, a backslash is written twice.""",
        [
            ("`regexp_like(a, pattern)`, `regexp`, `rlike`", r"regexp_like('a1', '\\d')"),
            ("`regexp_replace(a, pattern, by)`", "regexp_replace('a  b', ' +', ' ')"),
            ("`regexp_extract(a, pattern[, group])`", r"regexp_extract('km 42', '(\\d+)', 1)"),
        ],
    ),
    (
        "Random values",
        "They differ by row and can only be assigned: conditions and rules have to be deterministic. There is no seed.",
        [
            ("`uuid()`", "length(uuid())"),
            ("`rand()`, `random()`: a DOUBLE from 0 up to, but not including, 1", "floor(rand())"),
        ],
    ),
    (
        "Arrays, structs and maps",
        """\
They are assigned to columns whose parts have the same names, in any order. They cannot be compared with each other.""",
        [
            ("`array(a, …)`", "array(1, 2.5, NULL)"),
            ("`struct(a, b AS name, …)`", "struct(1 AS x, 'a' AS y)"),
            ("`named_struct(name, a, …)`", "named_struct('x', 1, 'y', array())"),
            ("`map(key, a, …)`; a key is not NULL, and there once", "map('a', 1, 'b', 2)"),
            ("`size(a)`, `cardinality`, of an array or a map", "size(array(1, 2))"),
            ("`array_contains(a, b)`", "array_contains(array(1, 2), 2)"),
            ("`split(a, pattern[, limit])`, by a regular expression", "split('a, b', ', *')"),
        ],
    ),
    (
        "Dates and times",
        "",
        [
            ("`current_timestamp()`, `now()`: when the statement began", "current_timestamp() = now()"),
            ("`current_date()`, `curdate()`", "current_date() > DATE '2024-01-01'"),
            ("`localtimestamp()`, without a time zone", "localtimestamp() = now()::TIMESTAMP_NTZ"),
            ("`date + days`, `date - days`", "DATE '2024-02-28' + 2"),
            (
                "`date ± INTERVAL`, `timestamp ± INTERVAL`",
                "TIMESTAMP_NTZ '2024-01-01 00:00:00' - INTERVAL 1 HOUR",
            ),
            ("`date_add(a, days)`, `dateadd`", "date_add(DATE '2024-01-01', 31)"),
            ("`date_sub(a, days)`", "date_sub(DATE '2024-01-01', 1)"),
            ("`add_months(a, months)`", "add_months(DATE '2024-01-31', 1)"),
            ("`last_day(a)`", "last_day(DATE '2024-02-01')"),
            ("`datediff(end, start)`, `date_diff`", "datediff(DATE '2024-03-01', DATE '2024-02-01')"),
            ("`trunc(date, unit)`", "trunc(DATE '2024-05-17', 'MONTH')"),
            ("`date_trunc(unit, timestamp)`", "date_trunc('HOUR', TIMESTAMP '2024-01-01 10:45:00')"),
            ("`year(a)`", "year(DATE '2024-05-17')"),
            ("`quarter(a)`", "quarter(DATE '2024-05-17')"),
            ("`month(a)`", "month(DATE '2024-05-17')"),
            ("`day(a)`, `dayofmonth`", "day(DATE '2024-05-17')"),
            ("`dayofweek(a)`, Sunday is 1", "dayofweek(DATE '2024-05-17')"),
            ("`weekday(a)`, Monday is 0", "weekday(DATE '2024-05-17')"),
            ("`dayofyear(a)`", "dayofyear(DATE '2024-05-17')"),
            ("`weekofyear(a)`", "weekofyear(DATE '2024-05-17')"),
            ("`hour(a)`", "hour(TIMESTAMP '2024-01-01 10:45:30')"),
            ("`minute(a)`", "minute(TIMESTAMP '2024-01-01 10:45:30')"),
            ("`second(a)`", "second(TIMESTAMP '2024-01-01 10:45:30')"),
            ("`extract(part FROM a)`", "extract(MONTH FROM DATE '2024-05-17')"),
            ("`date_format(a, pattern)`", "date_format(DATE '2024-05-17', 'yyyy/MM/dd')"),
            ("`make_date(year, month, day)`", "make_date(2024, 2, 29)"),
            ("`to_date(a)`, `date(a)`", "to_date('2024-02-29')"),
            ("`to_timestamp(a)`", "to_timestamp('2024-02-29 12:00:00')"),
            ("`unix_seconds(a)`", "unix_seconds(TIMESTAMP '1970-01-01 00:00:01')"),
            ("`unix_millis(a)`", "unix_millis(TIMESTAMP '1970-01-01 00:00:01')"),
            ("`unix_micros(a)`", "unix_micros(TIMESTAMP '1970-01-01 00:00:01')"),
            ("`timestamp_seconds(a)`", "timestamp_seconds(1)"),
            ("`timestamp_millis(a)`", "timestamp_millis(1500)"),
            ("`timestamp_micros(a)`", "timestamp_micros(1)"),
        ],
    ),
]


def result(example: str) -> str:
    """Returns the value of an example, as it would be written in SQL."""
    row = pa.table({"row": pa.array([0], pa.int32())})
    (value,) = pa.table(_internal.evaluate(row, example, "UTC"))["value"].to_pylist()
    return shown(value)


def shown(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return f"'{value}'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            zone = "" if value.tzinfo is None else "Z"
            return f"{value.replace(tzinfo=None).isoformat(' ')}{zone}"
        case date():
            return value.isoformat()
        case dict():
            return "{" + ", ".join(f"{name}: {shown(part)}" for name, part in value.items()) + "}"
        case list() if value and all(isinstance(part, tuple) for part in value):
            return "{" + ", ".join(f"{shown(key)}: {shown(part)}" for key, part in value) + "}"
        case list():
            return "[" + ", ".join(map(shown, value)) + "]"
        case _:
            return str(value)


def page() -> str:
    """Returns the text of the page."""
    parts = [START]
    for title, text, rows in SECTIONS:
        lines = [f"## {title}", ""]
        lines += [text, ""] if text else []
        lines += ["| | example | result |", "| --- | --- | --- |"]
        for what, example in rows:
            cells = [what, f"`{example}`", f"`{result(example)}`"]
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
        parts.append("\n".join(lines) + "\n")
    parts.append(f"{FURTHER}\n{textwrap.fill(', '.join(map('`{}`'.format, further())), 120)}\n")
    return "\n".join(parts)


def further() -> list[str]:
    """Returns the functions that only Spark evaluates, in expressions of tables that other engines have defined."""
    always, _ = _internal.rule_functions()
    return sorted(set(always) - set(_internal.function_names()))


def main() -> None:
    if "--check" in sys.argv[1:]:
        if PAGE.read_text("utf-8") != page():
            sys.exit("FUNCTIONS.md is stale: run scripts/functions.py")
    else:
        PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
