"""Tests tables in the Python package `datafusion`, in a separate environment.

The package is fetched from PyPI. The wheel `deltalog-datafusion` is compiled, which takes minutes because of
DataFusion's crates.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from tests.fetched import blocks, environment

pytestmark = [pytest.mark.newest, pytest.mark.thorough(every=0), pytest.mark.timeout(3000)]

MANIFEST = "crates/deltalog-datafusion/python/Cargo.toml"
SETTINGS = {"DELTALOG_TESTS": "", "CARGO_INCREMENTAL": "0"}


def run(command: list[str], directory: Path) -> str:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, env=os.environ | SETTINGS
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a Python interpreter with DataFusion and the wheel."""
    made = tmp_path_factory.mktemp("datafusion")
    maturin = str(Path(sys.executable).parent / "maturin")
    options = ["--manifest-path", MANIFEST, "--profile", "dev", "--target-dir", "target"]
    run([maturin, "build", *options, "--interpreter", sys.executable, "--out", str(made)], root)
    [wheel] = made.glob("*.whl")
    found = environment(made / "venv", ("datafusion>=55,<56",))
    run([str(found), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], root)
    return found


def test_cases(root: Path, python: Path) -> None:
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/python/datafusion_cases.py",
    ]
    told = run(command, root)
    assert re.search(r"\d+ passed", told)
    assert "skipped" not in told


def test_the_example_of_the_page(root: Path, python: Path, tmp_path: Path) -> None:
    [example] = [block for block in blocks(root / "docs" / "tools.md") if "deltalog_datafusion" in block]
    rows = pa.table({"city": ["Oslo", "Rome", "Oslo"], "km": [4.5, 12.0, 7.5]})
    write_deltalake(tmp_path / "trips", rows)
    program = tmp_path / "example.py"
    program.write_text(example)
    run([str(python), str(program)], tmp_path)
