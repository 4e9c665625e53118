"""In random histories, every version has the rows that were written, and all three readers agree.

`DELTALOG_HISTORIES=100-199` plays these seeds instead of the few that CI plays. `12` is one seed, and `12-without-3-7`
is seed 12 without its steps 3 and 7.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.interop.conftest import Jvm
from tests.interop.histories.history import History

LENGTH = 12
ASKED = os.environ.get("DELTALOG_HISTORIES", "")
COMMAND = ".venv/bin/python -m pytest tests/interop/histories"


def names(default: range) -> list[str]:
    """Returns the names of the histories to play."""
    found = re.fullmatch(r"(\d+)-(\d+)", ASKED)
    if found:
        return [str(seed) for seed in range(int(found[1]), int(found[2]) + 1)]
    return [ASKED] if ASKED else [str(seed) for seed in default]


def parse(name: str) -> tuple[int, frozenset[int]]:
    seed, _, skipped = name.partition("-without-")
    return int(seed), frozenset(int(number) for number in skipped.split("-") if number)


@pytest.mark.parametrize("name", names(range(24)))
def test_with_deltalake(name: str, tmp_path: Path) -> None:
    play(name, tmp_path, None, "test_with_deltalake")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (at > 0)) for at, name in enumerate(names(range(2)))],
)
def test_with_the_connector(name: str, tmp_path: Path, jvm: Jvm) -> None:
    play(name, tmp_path, jvm, "test_with_the_connector")


def play(name: str, directory: Path, jvm: Jvm | None, test: str) -> None:
    """Plays a history. A failure shows the steps of the history. If the seed was requested, the steps are first
    reduced to a few.
    """
    history = History(*parse(name))
    try:
        assert history.play(directory, jvm, LENGTH) >= 1
    except Exception as error:
        if ASKED:
            history, error = shrink(history, error, directory, jvm)
        told = f"{type(error).__name__}: {error}\n\n" + "\n".join(history.steps)
        again = f"DELTALOG_HISTORIES={history.name} {COMMAND} -k {test}"
        raise AssertionError(f"{told}\n\nrun it again: {again}") from error
    finally:
        shutil.rmtree(directory)


def shrink(failed: History, error: Exception, directory: Path, jvm: Jvm | None) -> tuple[History, Exception]:
    """Leaves out every step without which the history still fails with the same kind of error."""
    for number in sorted(set(range(LENGTH)) - failed.skipped, reverse=True):
        smaller = History(failed.seed, failed.skipped | {number})
        try:
            smaller.play(directory, jvm, LENGTH)
        except Exception as found:  # noqa: BLE001 (any kind may be the one)
            if type(found) is type(error):
                failed, error = smaller, found
    return failed, error
