"""The stubs of the binary declare exactly what the binary has, file by file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

STUBS = ROOT / "python/deltalog/_internal"


def test_each_stub_has_the_name_of_a_rust_file() -> None:
    stubs = {file.stem for file in STUBS.glob("*.pyi")} - {"__init__"}
    sources = ROOT / "crates/deltalog-python/src"
    assert stubs <= {source.stem for source in sources.iterdir()}


def test_the_stubs_match_the_binary(tmp_path: Path) -> None:
    # The binary is one module: at run time there are no modules for the files of its stubs.
    not_there = tmp_path / "not_there"
    modules = [f"deltalog._internal.{file.stem}\n" for file in STUBS.glob("*.pyi") if file.stem != "__init__"]
    not_there.write_text("".join(modules))
    # Runs in another directory, because mypy would otherwise use the repository's configuration and sources.
    command = [sys.executable, "-m", "mypy.stubtest", "deltalog._internal", "--allowlist", str(not_there)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=280, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
