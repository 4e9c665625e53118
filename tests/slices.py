"""Chooses the tests of a run by the mark `thorough`. A thorough test takes long for what a quicker one shows, too.

`DELTALOG_TESTS=quick` leaves the thorough tests out, `DELTALOG_TESTS=deep` leaves out all others, and without it all
tests run. `DELTALOG_SLICE=3/20` takes slice 3 of 20 of the thorough tests, counted from 0: with `quick` besides the
other tests, with `deep` alone. CI takes the slice of its tree, so that each thorough test runs after some changes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable

FEW = 12
"""So many thorough tests of a file stay together, with the servers that they share."""


def groups(thorough: Collection[tuple[str, str]]) -> dict[str, str]:
    """Returns the group of each test by its name; `thorough` are files and names."""
    sizes = Counter(file for file, _ in thorough)
    return {name: file if sizes[file] <= FEW else name for file, name in thorough}


def slice_of(group: str, count: int) -> int:
    """Returns the number of the slice that a group belongs to."""
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "big") % count


def taken(tests: Iterable[tuple[str, str, bool]], which: str, wanted: str) -> set[str]:
    """Returns the names of the tests to run; `tests` are files, names, and whether each is thorough."""
    if which not in ("", "quick", "deep"):
        raise ValueError(f"DELTALOG_TESTS is quick or deep, and not {which}")
    tests = list(tests)
    number, _, count = wanted.partition("/")
    of = groups([(file, name) for file, name, is_thorough in tests if is_thorough])

    def is_taken(name: str) -> bool:
        if name not in of:
            return which != "deep"
        return slice_of(of[name], int(count)) == int(number) if wanted else which != "quick"

    return {name for _, name, _ in tests if is_taken(name)}
