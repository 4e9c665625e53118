"""The stub file of the binary declares exactly what the binary has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_internal_pyi_matches_the_binary(tmp_path: Path) -> None:
    # Runs in another directory, because mypy would otherwise use the repository's configuration and sources.
    command = [sys.executable, "-m", "mypy.stubtest", "deltalog._internal"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=280, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
