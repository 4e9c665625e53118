"""Prints, at the end of a run, how many golden tables came to which outcome."""

from __future__ import annotations

from collections import Counter

import pytest

OUTCOMES = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = Counter()


@pytest.fixture
def outcomes(pytestconfig: pytest.Config) -> Counter[str]:
    """Outcome by count, of all golden tables so far."""
    return pytestconfig.stash[OUTCOMES]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash[OUTCOMES]
    if counts:
        terminalreporter.section("golden tables by outcome")
        for outcome, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
            terminalreporter.write_line(f"{count:5}  {outcome}")
        terminalreporter.write_line(f"{counts.total():5}  in all")
