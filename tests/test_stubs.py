"""The stub files declare exactly the functions and classes that the binary has, and both binaries raise the same
classes for errors of the core.
"""

from __future__ import annotations

import re
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
    # The binary is a single module, so the stub files do not exist as modules at run time.
    not_there = tmp_path / "not_there"
    modules = [f"deltalog._internal.{file.stem}\n" for file in STUBS.glob("*.pyi") if file.stem != "__init__"]
    not_there.write_text("".join(modules))
    # The check runs in another directory. Otherwise mypy would use the configuration and the sources of the repository.
    command = [sys.executable, "-m", "mypy.stubtest", "deltalog._internal", "--allowlist", str(not_there)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=280, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_both_binaries_have_the_same_class_for_each_kind_of_error() -> None:
    def classes(file: str) -> dict[str, str]:
        text = (ROOT / file).read_text()
        body = text.partition("fn class_name(")[2].partition("\n}\n")[0]
        return dict(re.findall(r"(\w+) => \"(\w+)\"", body))

    expected = classes("crates/deltalog-python/src/error.rs")
    assert len(expected) > 10
    assert classes("crates/deltalog-datafusion/python/src/error.rs") == expected
