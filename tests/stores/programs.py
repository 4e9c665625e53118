"""Runs programs in processes of their own, with the package that this process has imported."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import deltalog

from .s3_server import ROOT


def environment() -> dict[str, str]:
    """Returns the environment for a process that imports the package."""
    is_in_place = (ROOT / "python" / "deltalog").samefile(Path(deltalog.__file__).parent)
    return {**os.environ, "PYTHONPATH": str(ROOT / "python")} if is_in_place else dict(os.environ)


def command(program: str, *arguments: str) -> list[str]:
    """Returns the command that runs a program."""
    return [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *arguments]


def run(program: str, *arguments: str) -> None:
    """Runs a program to its end. Raises `CalledProcessError` if it fails."""
    subprocess.run(command(program, *arguments), check=True, timeout=120, env=environment())
