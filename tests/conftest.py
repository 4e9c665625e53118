"""What all tests share. Nothing is skipped silently: in CI, what is missing is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

# Spark's Python workers are those of the environment under test, and Spark talks to nobody but itself.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

ROOT = Path(__file__).parent.parent


def missing(what: str) -> NoReturn:
    """Skips the test with one visible line, or fails it in CI."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what} (not skipped, because CI is set)")
    pytest.skip(what)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT
