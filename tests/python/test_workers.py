"""Daft and a cluster of Dask, which are fetched from PyPI into a separate environment: they are large."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import deltalog
from tests.conftest import missing

pytestmark = [pytest.mark.newest, pytest.mark.thorough, pytest.mark.timeout(900)]

PACKAGES = ("daft>=0.7,<0.8", "dask[dataframe,distributed]>=2025.1")
SETTINGS = {"DO_NOT_TRACK": "1", "DELTALOG_TESTS": ""}
BLOCK = re.compile(r"^```(?:py|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with these libraries, and with the deltalog under test."""
    directory = tmp_path_factory.mktemp("workers")
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    made = directory / "bin" / "python"
    command = [str(made), "-m", "pip", "install", "--quiet", *PACKAGES]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        missing(f"Daft and Dask cannot be fetched: {fetched.stderr.splitlines()[-1:]}")
    [site] = directory.glob("lib/python*/site-packages")
    of_tests = [str(Path(deltalog.__file__).parent.parent), sysconfig.get_path("purelib")]
    (site / "under_test.pth").write_text("\n".join(of_tests))
    return made


@pytest.mark.parametrize("cases", ["daft_cases", "dask_cluster_cases"])
def test_cases(root: Path, python: Path, cases: str) -> None:
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/python/{cases}.py"]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, env=os.environ | SETTINGS
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"\d+ passed", done.stdout)
    assert "skipped" not in done.stdout


def test_the_examples_of_the_page(root: Path, python: Path, tmp_path: Path) -> None:
    blocks = BLOCK.findall((root / "docs" / "dask-daft.md").read_text("utf-8"))
    assert len(blocks) == 3
    program = tmp_path / "example.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run(
        [str(python), str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | SETTINGS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
