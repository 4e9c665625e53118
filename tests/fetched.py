"""Creates environments with libraries that are too large, or have too special requirements, for the tests' own
environment.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import deltalog
from tests.conftest import missing

__all__ = ["blocks", "environment"]

BLOCK = re.compile(r"^```(?:py|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def environment(directory: Path, packages: tuple[str, ...]) -> Path:
    """Returns a Python interpreter with packages from PyPI, in addition to the packages of the tests' environment and
    the deltalog under test.
    """
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    made = directory / "bin" / "python"
    command = [str(made), "-m", "pip", "install", "--quiet", *packages]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        missing(f"{' '.join(packages)} cannot be fetched: {fetched.stderr.splitlines()[-1:]}")
    [site] = directory.glob("lib/python*/site-packages")
    of_tests = [str(Path(deltalog.__file__).parent.parent), sysconfig.get_path("purelib")]
    (site / "under_test.pth").write_text("\n".join(of_tests))
    return made


def blocks(page: Path) -> list[str]:
    """Returns two lists of a page's Python code blocks: those marked `python`, which all test runs execute, and those
    marked `py`.
    """
    return BLOCK.findall(page.read_text("utf-8"))
