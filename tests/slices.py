"""Chooses the tests of a run. Tests with the mark `thorough` take long, and check more thoroughly what quicker tests
check in part.

With `DELTALOG_TESTS=quick` the thorough tests are left out, with `DELTALOG_TESTS=deep` only the thorough tests run,
and without the variable all tests run. `DELTALOG_SLICE=3/20` selects slice 3 of 20 slices of the thorough tests,
counted from 0. With `quick`, this slice runs in addition to the other tests; with `deep`, it runs alone. Tests with
the mark `thorough(every=4)` are in every fourth slice, no matter how many slices there are. Tests with the mark
`thorough(every=0)` are in none, because they install or compile other software, or run on a Spark between the oldest
and the newest. CI selects the slice by the content of the source tree, so over several changes it runs all thorough
tests that are in a slice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

FEW = 12
"""A file with at most this many thorough tests is not divided, so that the tests can share their servers."""


class Candidate(NamedTuple):
    """A test that may be chosen."""

    file: str
    name: str
    is_thorough: bool = False
    every: int | None = None


def groups(thorough: Collection[Candidate]) -> dict[str, str]:
    """Returns the group of each test. The tests of a group are in the same slice."""
    sizes = Counter(test.file for test in thorough)
    return {test.name: test.file if sizes[test.file] <= FEW else test.name for test in thorough}


def slice_of(group: str, count: int) -> int:
    """Returns the number of the slice to which a group belongs."""
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "big") % count


def taken(tests: Collection[Candidate], which: str, wanted: str) -> set[str]:
    """Returns the names of the tests to run."""
    if which not in ("", "quick", "deep"):
        raise ValueError(f"DELTALOG_TESTS must be quick or deep, not {which}")
    number, _, total = wanted.partition("/")
    group_of = groups([test for test in tests if test.is_thorough])

    def is_taken(test: Candidate) -> bool:
        if not test.is_thorough:
            return which != "deep"
        if not wanted:
            return which != "quick"
        count = int(total) if test.every is None else test.every
        return count > 0 and slice_of(group_of[test.name], count) == int(number) % count

    return {test.name for test in tests if is_taken(test)}
