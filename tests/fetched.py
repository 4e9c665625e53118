"""Environments with libraries that are too large, or too particular, for the tests' own environment."""

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
    """Makes a Python with packages of PyPI, and with the deltalog under test and the tests' environment."""
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
    """Returns the blocks of Python of a page: those that all tests run (`python`), and the others (`py`)."""
    return BLOCK.findall(page.read_text("utf-8"))
