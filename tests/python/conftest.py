"""Fixtures for the tests of the Python package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deltalog import upkeep


@pytest.fixture
def background() -> Iterator[None]:
    """Lets the work after a commit, such as a checkpoint, run in the background."""
    upkeep.run_in_background(True)
    yield
    assert upkeep.wait(60)
    upkeep.run_in_background(False)
