"""Chooses the tests of a run by the mark `thorough`. A thorough test takes long, and checks something that a quicker
test also checks in part.

`DELTALOG_TESTS=quick` leaves the thorough tests out, `DELTALOG_TESTS=deep` leaves out all others, and without it all
tests run. `DELTALOG_SLICE=3/20` takes slice 3 of 20 of the thorough tests, counted from 0: with `quick` besides the
other tests, with `deep` alone. Tests with `thorough(every=4)` are in four slices, whatever the number of slices is; a
slice of none (`3/0`) has only these. CI takes the slice of its tree, so that each of them runs after some changes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

FEW = 12
"""Up to this many thorough tests of a file stay together, with the servers that they share."""


class Candidate(NamedTuple):
    """A test that might run."""

    file: str
    name: str
    is_thorough: bool = False
    every: int | None = None


def groups(thorough: Collection[Candidate]) -> dict[str, str]:
    """Returns the group of each test by its name."""
    sizes = Counter(test.file for test in thorough)
    return {test.name: test.file if sizes[test.file] <= FEW else test.name for test in thorough}


def slice_of(group: str, count: int) -> int:
    """Returns the number of a group's slice."""
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "big") % count


def taken(tests: Collection[Candidate], which: str, wanted: str) -> set[str]:
    """Returns the names of the tests to run."""
    if which not in ("", "quick", "deep"):
        raise ValueError(f"DELTALOG_TESTS is quick or deep, and not {which}")
    number, _, total = wanted.partition("/")
    group_of = groups([test for test in tests if test.is_thorough])

    def is_taken(test: Candidate) -> bool:
        if not test.is_thorough:
            return which != "deep"
        if not wanted:
            return which != "quick"
        count = test.every or int(total)
        return count > 0 and slice_of(group_of[test.name], count) == int(number) % count

    return {test.name for test in tests if is_taken(test)}
