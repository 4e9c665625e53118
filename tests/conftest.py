"""Fixtures that all tests share. Nothing is skipped silently: in CI, a missing requirement is an error."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest

# Spark's Python workers use the environment under test, and Spark listens on the loopback address only.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

# A test's driver lives for minutes and runs most of its code only once, so optimizing it costs more than it gains. The
# code cache would then be only a fifth as large, and cleaning it would take a fifth of the time.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
)

ROOT = Path(__file__).parent.parent
OUTCOMES = pytest.StashKey[Counter[str]]()


def missing(what: str) -> NoReturn:
    """Skips the test with one visible line, or fails it in CI."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what} (not skipped, because CI is set)")
    pytest.skip(what)


@pytest.fixture(scope="session", autouse=True)
def inline_upkeep() -> None:
    """Lets commits write their checkpoints before they return, so that tests find the files that they expect."""
    try:
        from deltalog import upkeep
    except ImportError:
        return  # Some tests need no binary.
    upkeep.run_in_background(False)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the thorough tests in CI, which has limited time. The summary counts them as deselected."""
    if os.environ.get("DELTALOG_TESTS") != "quick":
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=left_out)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = Counter()


@pytest.fixture
def outcomes(pytestconfig: pytest.Config) -> Counter[str]:
    """Counts by outcome, over all golden tables so far."""
    return pytestconfig.stash[OUTCOMES]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints at the end of a run how many golden tables had which outcome."""
    counts = config.stash[OUTCOMES]
    if counts:
        terminalreporter.section("golden tables by outcome")
        for outcome, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
            terminalreporter.write_line(f"{count:5}  {outcome}")
        terminalreporter.write_line(f"{counts.total():5}  in all")
