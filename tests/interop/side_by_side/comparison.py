"""Compares the results of the JVM connector and of deltalog for a case, and formats the differences as lines of a case
file (see `cases.py`).
"""

from __future__ import annotations

from tests.interop.side_by_side.cases import Case
from tests.interop.side_by_side.engines import Observed

# The error's name has its own line in a case, and messages are not compared.
NOT_COMPARED = ("error", "message")


def found_errors(theirs: Observed, ours: Observed) -> tuple[str, str] | None:
    if "error" not in theirs and "error" not in ours:
        return None
    return theirs.get("error", "none"), ours.get("error", "none")


def found_differences(theirs: Observed, ours: Observed) -> dict[str, tuple[str, str]]:
    """Returns the results of both engines for the aspects in which they differ."""
    aspects = dict.fromkeys([*theirs, *ours])
    pairs = {aspect: (theirs.get(aspect, ""), ours.get(aspect, "")) for aspect in aspects}
    return {
        aspect: pair for aspect, pair in pairs.items() if aspect not in NOT_COMPARED and pair[0] != pair[1]
    }


def expected_differences(case: Case) -> dict[str, tuple[str, str]]:
    return {known.aspect: (known.connector, known.deltalog) for known in case.differences}


def lines(case: Case, theirs: Observed, ours: Observed) -> list[str]:
    """Returns the lines of differences that the case should have, with `?` for missing reasons."""
    found = []
    errors = found_errors(theirs, ours)
    if errors:
        found.append("! " + (errors[0] if errors[0] == errors[1] else " | ".join(errors)))
    reasons = {known.aspect: known.reason for known in case.differences}
    for aspect, (of_theirs, of_ours) in found_differences(theirs, ours).items():
        found.append(f"~ {aspect} | {of_theirs} | {of_ours} | {reasons.get(aspect, '?')}")
    return found
