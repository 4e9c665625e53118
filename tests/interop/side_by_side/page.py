"""Generates the page of differences, docs/differences.md, from the cases.

python -m tests.interop.side_by_side.page
"""

from __future__ import annotations

from tests.conftest import ROOT
from tests.interop.side_by_side.cases import PYTHON, Case, cases

PAGE = ROOT / "docs" / "differences.md"
START = """# Statements that differ from the JVM connector

The interop tests run {count} statements with the JVM connector and with deltalog, on the same Spark, and compare
results, rows, columns, properties, protocol and history. This page lists the statements that differ. All other
statements have the same effect in both, or both refuse them. The page is generated from the table in
`tests/interop/side_by_side/statements`, by `python -m tests.interop.side_by_side.page`.
"""


def page() -> str:
    every = cases()
    lines = [START.format(count=len(every))]
    for group in dict.fromkeys(case.group for case in every):
        differing = [case for case in every if case.group == group and case.differences]
        if not differing:
            continue
        lines += [f"## {group.partition('_')[2].capitalize()}", ""]
        lines += ["| statement | JVM connector | deltalog | why |", "| --- | --- | --- | --- |"]
        lines += [_row(case) for case in differing]
        lines.append("")
    return "\n".join(lines)


def _row(case: Case) -> str:
    last = case.statements[-1].removeprefix(PYTHON).replace("|", "\\|")
    fence = "``" if "`" in last else "`"
    code = f"{fence} {last} {fence}" if "`" in last else f"`{last}`"
    sides = (_side(case, 0), _side(case, 1))
    reasons = " ".join(dict.fromkeys(known.reason for known in case.differences))
    return f"| {case.name}: {code} | {' | '.join(sides)} | {reasons} |"


def _side(case: Case, side: int) -> str:
    """Describes briefly what one engine does: the error that it raises, or its result."""
    if case.errors and case.errors[side] != "none":
        return f"refused: {case.errors[side]}"
    if case.errors and case.errors[1 - side] != "none":
        return "done"
    first = case.differences[0]
    text = (first.connector, first.deltalog)[side] or "nothing"
    return f"{first.aspect}: {text}" if len(text) < 80 else f"{first.aspect}: …"


if __name__ == "__main__":
    PAGE.write_text(page())
