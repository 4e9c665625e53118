"""Tests with the oldest DuckDB that `pip install 'deltalog[sql]'` accepts, which is installed from PyPI into a separate
environment. The tests' own environment has the newest DuckDB.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fetched import environment

pytestmark = [pytest.mark.newest, pytest.mark.thorough(every=0), pytest.mark.timeout(900)]


def test_cases(root: Path, tmp_path: Path) -> None:
    [oldest] = re.findall(r'(?m)^sql = \["duckdb>=(.*)"\]$', (root / "pyproject.toml").read_text())
    python = environment(tmp_path, (f"duckdb=={oldest}", "pytz"))  # It needs pytz for times with a zone.
    found = subprocess.check_output([python, "-c", "import duckdb; print(duckdb.__version__)"], text=True)
    assert found.startswith(oldest)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python/test_duckdb.py"]
    all_tests = os.environ | {"DELTALOG_TESTS": ""}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=all_tests)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"\d+ passed", done.stdout)
    assert "skipped" not in done.stdout
