"""Tests with Daft, Ray and a Dask cluster.

These packages are large, so they are installed from PyPI into a separate environment.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fetched import blocks, environment

pytestmark = [pytest.mark.newest, pytest.mark.thorough(every=0), pytest.mark.timeout(900)]

PACKAGES = ("daft>=0.7,<0.8", "dask[dataframe,distributed]>=2025.1", "ray[data]>=2.60,<3")
SETTINGS = {"DO_NOT_TRACK": "1", "RAY_USAGE_STATS_ENABLED": "0", "DELTALOG_TESTS": ""}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("workers"), PACKAGES)


@pytest.mark.parametrize("cases", ["daft_cases", "dask_cluster_cases", "ray_cases"])
def test_cases(root: Path, python: Path, cases: str) -> None:
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/python/{cases}.py"]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, env=os.environ | SETTINGS
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"\d+ passed", done.stdout)
    assert "skipped" not in done.stdout


def test_the_examples_of_the_page(root: Path, python: Path, tmp_path: Path) -> None:
    examples = blocks(root / "docs" / "dask-ray-daft.md")
    assert len(examples) == 4
    program = tmp_path / "example.py"
    program.write_text("\n".join(examples))
    done = subprocess.run(
        [str(python), str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | SETTINGS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
