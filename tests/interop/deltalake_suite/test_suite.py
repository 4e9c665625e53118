"""Runs the test suite of `deltalake` on deltalog, which it imports under the name `deltalake`.

The suite comes from the source archive of `deltalake`, and reads the tables in this archive. `differences.py` lists
the tests that fail, with the reasons. The page "From deltalake" has the same reasons. If another test begins to fail,
this is a regression. If a listed test begins to pass, it must be removed from the list.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

import deltalog
from tests.conftest import missing
from tests.interop.deltalake_suite.differences import DIFFERENCES

HERE = Path(__file__).parent
VERSION = "1.6.6"
"""The version of `deltalake` whose tests are run."""

# These tests need servers, or libraries that are not in the environment.
LEFT_OUT = ("integration", "benchmark", "no_pyarrow", "lakefs", "pyspark", "datafusion", "opentelemetry")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of the suite. The tables that it reads are beside this directory."""
    directory = tmp_path_factory.mktemp("deltalake")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    archive = ["--no-deps", "--no-binary", "deltalake", f"deltalake=={VERSION}"]
    for command in (
        [*pip, "download", *archive, "--dest", str(directory)],
        [*pip, "install", "--no-deps", "--target", str(directory / "libraries"), "arro3-io", "pytest-mock"],
    ):
        fetched = subprocess.run(command, capture_output=True, text=True, check=False)
        if fetched.returncode != 0:
            missing(f"the tests of deltalake cannot be fetched: {fetched.stderr.splitlines()[-1:]}")
    with tarfile.open(directory / f"deltalake-{VERSION}.tar.gz") as archived:
        archived.extractall(directory, filter="data")
    return directory / f"deltalake-{VERSION}" / "python"


def functions(names: Iterable[str]) -> set[str]:
    return {name.partition("[")[0] for name in names}


@pytest.mark.thorough
@pytest.mark.newest
@pytest.mark.timeout(1500)
def test_the_suite_of_deltalake(suite: Path, tmp_path: Path) -> None:
    package = str(Path(deltalog.__file__).parent.parent)
    path = os.pathsep.join([package, str(HERE), str(suite.parent.parent / "libraries")])
    outcomes = tmp_path / "outcomes.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests",
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        ".",
        "-W",
        "ignore",
    ]
    command += ["-p", "alias", "-p", "no:cacheprovider", "--timeout", "120", "--outcomes", str(outcomes)]
    command += ["-m", " and ".join(f"not {name}" for name in LEFT_OUT)]
    ran = subprocess.run(
        command,
        cwd=suite,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert outcomes.exists(), ran.stdout[-3000:] + ran.stderr[-3000:]
    found: dict[str, str] = {
        name.removeprefix("tests/"): outcome for name, outcome in json.loads(outcomes.read_text()).items()
    }
    failed = {name: outcome for name, outcome in found.items() if outcome not in ("passed", "skipped")}
    expected = {name for difference in DIFFERENCES for name in difference.tests}
    new = {name: text for name, text in failed.items() if not {name, *functions([name])} & expected}
    assert new == {}, "tests of deltalake that fail, and are not in differences.py"
    assert expected - set(failed) - functions(failed) == set(), (
        "tests in differences.py that pass or no longer exist"
    )
    assert sum(outcome == "passed" for outcome in found.values()) > 300


def test_the_page_has_every_difference(root: Path) -> None:
    """The page lists every difference with the number of its test functions."""
    page = (root / "docs" / "moving" / "deltalake.md").read_text("utf-8")
    rows = [f"| {difference.why} | {len(functions(difference.tests))} |" for difference in DIFFERENCES]
    assert "\n".join(rows) in page


def test_no_test_has_two_reasons() -> None:
    names = [name for difference in DIFFERENCES for name in difference.tests]
    assert len(names) == len(set(names))
