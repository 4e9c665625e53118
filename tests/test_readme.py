"""Every Python block of the README runs, in order, in one session, in an empty directory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_run(root: Path, tmp_path: Path) -> None:
    readme = (root / "README.md").read_text()
    blocks = BLOCK.findall(readme)
    assert len(blocks) == readme.count("```python") > 0
    # Each block keeps its line number, so that a traceback points into the README.
    program = ""
    for match in BLOCK.finditer(readme):
        lines_before = readme.count("\n", 0, match.start(1))
        program += "\n" * (lines_before - program.count("\n")) + match.group(1)
    script = tmp_path / "README.py"
    script.write_text(program)
    work = tmp_path / "work"
    work.mkdir()
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=work, timeout=280, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
