"""The page of SQL statements: those that deltalog parses, and examples of those that Spark parses.

The forms of the first are written here, and compared with the words that the parser (`OwnStatement.java`) knows. The
others are the cases of `tests/interop/side_by_side`, which the tests run.
"""

from __future__ import annotations

import re
from pathlib import Path

from scripts.reference.tables import markdown
from tests.interop.side_by_side.cases import PYTHON, Case, cases

__all__ = ["FORMS", "page", "words_of_the_forms", "words_of_the_parser"]

PARSER = Path("python/deltalog/spark/java/common/procedures/OwnStatement.java")

START = """\
# SQL statements

These work in classic Spark sessions, and on servers with deltalog in their settings, for tables by name and by path
(``deltalog.`/path` ``). The rules of types and results are Spark's. Conditions may use these
[operators and functions](../../FUNCTIONS.md), [procedures](procedures.md) do what has no statement, and
[Statements that differ](../differences.md) compares with the JVM connector.

This page is written by `python -m scripts.reference`: the forms have the words of the parser, and the examples are
those that the tests run.

## Statements that deltalog parses

Spark's own grammar lacks these. `table` is a name or a path in quotes, and parameters (`?`, `:day`) may be where values
are. `EXPLAIN` before a statement shows what it would do.

"""

FORMS: list[tuple[str, str, str]] = [
    ("history", "DESCRIBE HISTORY table [LIMIT n]", "the commits, newest first; also `DESC`"),
    ("detail", "DESCRIBE DETAIL table", "one row about the newest version"),
    (
        "vacuum",
        "VACUUM table [LITE | FULL] [RETAIN n HOURS] [USING INVENTORY (query) | table] [DRY RUN]",
        "deletes files that the table no longer needs; the clauses in any order",
    ),
    (
        "optimize",
        "OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (column, …)]",
        "joins small files, orders rows, or clusters a clustered table; `FULL` stands alone",
    ),
    (
        "reorg",
        "REORG TABLE table [WHERE condition] APPLY (PURGE)",
        "rewrites files without deleted rows and dropped columns",
    ),
    (
        "recompute_statistics",
        "ANALYZE TABLE table COMPUTE DELTA STATISTICS",
        "adds statistics to files that have none, or poor ones",
    ),
    (
        "restore",
        "RESTORE TABLE table TO [VERSION | SYSTEM_VERSION AS OF n] [TIMESTAMP | SYSTEM_TIME AS OF time]",
        "makes an earlier version the newest one again; `FOR` may replace `TO`",
    ),
    ("generate", "GENERATE symlink_format_manifest FOR TABLE table", "writes manifests for other engines"),
    (
        "repair",
        "FSCK REPAIR TABLE table [VERIFY ALL FILES] [DRY RUN]",
        "removes missing files from the log, with `VERIFY ALL FILES` also damaged ones",
    ),
    (
        "convert",
        "CONVERT TO DELTA parquet.`/path` [NO STATISTICS] [PARTITIONED BY (column type, …)]",
        "makes a table of a directory of Parquet files, or of a table of Parquet",
    ),
    (
        "clone",
        (
            "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table SHALLOW | DEEP CLONE source"
            " [VERSION AS OF n | TIMESTAMP AS OF 'time'] [TBLPROPERTIES ('name' = 'value', …)] [LOCATION 'path']"
        ),
        "a version becomes a table elsewhere",
    ),
    (
        "add_constraint",
        "ALTER TABLE table ADD CONSTRAINT name CHECK (condition)",
        "adds a condition for all rows",
    ),
    ("drop_constraint", "ALTER TABLE table DROP CONSTRAINT [IF EXISTS] name", "drops it"),
    (
        "drop_feature",
        "ALTER TABLE table DROP FEATURE feature [TRUNCATE HISTORY]",
        "drops a table feature; `TRUNCATE HISTORY` deletes the versions that use it",
    ),
]
"""For each procedure that a statement calls: the statement's form, and what it does."""

TITLES = {
    "create": "Create and replace tables",
    "insert": "Insert and overwrite",
    "casts": "Values of other types",
    "evolution": "New columns in the data",
    "dml": "Delete, update and merge",
    "alter": "Alter tables",
    "rules": "Constraints, defaults, generated and identity columns",
    "versions": "Versions and changes",
    "upkeep": "Maintenance",
    "show": "Look at tables",
}


def page(root: Path) -> str:
    """Returns the page.

    Raises:
        ValueError: the parser knows other words than the forms.
    """
    if words_of_the_parser(root) != words_of_the_forms():
        apart = words_of_the_parser(root) ^ words_of_the_forms()
        raise ValueError(f"the forms and {PARSER.name} differ in {sorted(apart)}: see FORMS")
    rows = [(_code(form), about, f"[{name}](procedures.md#{name})") for name, form, about in FORMS]
    parts = [START, markdown(("statement", "what it does", "procedure"), rows)]
    parts.append("## Statements that Spark parses\n\n")
    parts.append("In the examples `t` is a table, and `s` another one.\n\n")
    every = cases()
    for name, title in TITLES.items():
        examples = {
            _statement(case): case.name for case in every if case.group.endswith(f"_{name}") and _runs(case)
        }
        parts.append(f"### {title}\n\n")
        parts.append(markdown(("example", "what it shows"), [*examples.items()]))
    return "".join(parts).rstrip("\n") + "\n"


def words_of_the_parser(root: Path) -> set[str]:
    """Returns the words of SQL that the parser knows, and the procedures that it calls."""
    text = (root / PARSER).read_text("utf-8")
    words = set(re.findall(r'skip\("([A-Z_]+)"\)', text)) - {"EXPLAIN", "DESC"}
    return words | set(re.findall(r'"([a-z_]+)"', " ".join(re.findall(r"new OwnStatement\((.*?)\);", text))))


def words_of_the_forms() -> set[str]:
    """Returns the words of SQL in the forms, without those that the parser passes on, and their procedures."""
    words = {word for _, form, _ in FORMS for word in re.findall(r"[A-Z_]{2,}", form)}
    return (words | {"FOR"} | {name for name, _, _ in FORMS}) - {"PURGE"}


def _runs(case: Case) -> bool:
    """Returns whether deltalog carries out the statement of a case."""
    refused = case.errors is not None and case.errors[1] != "none"
    return not refused and not case.statements[-1].startswith(PYTHON)


def _statement(case: Case) -> str:
    return _code(case.statements[-1].replace("{dir}", "/data"))


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
