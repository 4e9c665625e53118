"""Reads the statement cases and the known differences between the JVM connector and deltalog.

Each file in `statements` contains a group of cases, which are separated by empty lines:

    # What the case is about
    CREATE TABLE t (a INT) USING delta
    INSERT INTO t VALUES (1),
      (2)
    >>> DeltaTable.forName(spark, "t").delete("a = 1")
    ! DELTA_SOMETHING 42000 | InvalidArgumentError
    ~ t rows | (1) | (2) | The reason.

Each line is a SQL statement, or a Python statement after `>>>`. An indented line continues the line before. Only the
results of the last statement are compared; the other statements prepare it. `{dir}` is a directory for the case. `!`
names the errors with which the connector and deltalog refuse the last statement; one name is enough if both are the
same. `~` is a known difference: the aspect that differs, the connector's result, deltalog's result, and the reason.
Quick test runs have only the cases that are marked with `% quick`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

STATEMENTS = Path(__file__).with_name("statements")
PYTHON = ">>> "


@dataclass(frozen=True)
class Difference:
    """A known difference in one aspect of a case: the results of both engines, and the reason."""

    aspect: str
    connector: str
    deltalog: str
    reason: str


@dataclass
class Case:
    """Some statements, and the expected result of the last one."""

    group: str
    name: str
    statements: list[str] = field(default_factory=list)
    errors: tuple[str, str] | None = None
    differences: list[Difference] = field(default_factory=list)
    is_quick: bool = False

    @property
    def key(self) -> str:
        return f"{self.group}: {self.name}"


def groups() -> list[str]:
    return [file.stem for file in sorted(STATEMENTS.glob("*.txt"))]


def cases() -> list[Case]:
    return [case for group in groups() for case in of_group(group, (STATEMENTS / f"{group}.txt").read_text())]


def of_group(group: str, text: str) -> list[Case]:
    found: list[Case] = []
    for line in text.splitlines():
        if not line:
            continue
        if line.startswith("# "):
            found.append(Case(group, line[2:]))
            continue
        case = found[-1]
        if line.startswith("! "):
            theirs, _, ours = line[2:].partition(" | ")
            case.errors = theirs, ours or theirs
        elif line.startswith("~ "):
            aspect, theirs, ours, reason = line[2:].split(" | ")
            case.differences.append(Difference(aspect, theirs, ours, reason))
        elif line == "% quick":
            case.is_quick = True
        elif line.startswith("  "):
            case.statements[-1] += " " + line.strip()
        else:
            case.statements.append(line)
    return found
