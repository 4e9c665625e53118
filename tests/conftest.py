"""Fixtures that all tests share. No test is skipped silently: in CI, a missing requirement is an error."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest

from scripts.class_archive import java_options
from tests.slices import Candidate, taken

# Spark's Python workers use the environment under test, and Spark listens on the loopback address only.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

ROOT = Path(__file__).parent.parent
OUTCOMES = pytest.StashKey[Counter[str]]()


def missing(what: str) -> NoReturn:
    """Skips the test with a visible reason, or fails it in CI."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what} (not skipped, because CI is set)")
    pytest.skip(what)


@pytest.fixture(scope="session", autouse=True)
def inline_upkeep() -> None:
    """Lets commits write their checkpoints before they return, so that tests find the files that they expect."""
    try:
        from deltalog import upkeep
    except ImportError:
        return  # Some tests run without the compiled binary.
    upkeep.run_in_background(False)


@pytest.fixture(scope="session")
def root() -> Path:
    """Returns the root directory of the repository."""
    return ROOT


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that `tests/slices.py` does not choose. The summary counts them as deselected."""
    tests = [_test(item) for item in items]
    names = taken(tests, os.environ.get("DELTALOG_TESTS", ""), os.environ.get("DELTALOG_SLICE", ""))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]


def _test(item: pytest.Item) -> Candidate:
    thorough = item.get_closest_marker("thorough")
    every = None if thorough is None else thorough.kwargs.get("every")
    return Candidate(item.nodeid.partition("::")[0], item.nodeid, thorough is not None, every)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = Counter()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Ends the run if a Spark test exceeds its time limit. The JVM still answers the call that was interrupted, and a
    following test would take this answer for the answer to a call of its own.
    """
    raised = None if call.excinfo is None else call.excinfo.value
    if is_interrupted(raised) and not {"spark", "jvm"}.isdisjoint(getattr(item, "fixturenames", ())):
        item.session.shouldfail = f"{item.nodeid} exceeded its time, so its session cannot be used any more"


def is_interrupted(raised: BaseException | None) -> bool:
    """Returns whether pytest-timeout has raised an exception. A `finally` that calls Spark may have replaced it."""
    while raised is not None:
        if "from pytest-timeout" in str(raised):
            return True
        raised = raised.__cause__ or raised.__context__
    return False


@pytest.fixture
def outcomes(pytestconfig: pytest.Config) -> Counter[str]:
    """Counts how many golden tables had each outcome so far."""
    return pytestconfig.stash[OUTCOMES]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """At the end of a run, prints how many golden tables had each outcome."""
    counts = config.stash[OUTCOMES]
    if counts:
        terminalreporter.section("golden tables by outcome")
        for outcome, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
            terminalreporter.write_line(f"{count:5}  {outcome}")
        terminalreporter.write_line(f"{counts.total():5}  in all")
