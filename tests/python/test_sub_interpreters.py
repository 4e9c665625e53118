"""Only the main interpreter of a process can import the package. Sub-interpreters get an error instead of hanging."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
{first}
other = interpreters.create()
try:
    found = interpreters.{run}(other, "from deltalog import DeltaTable")
except Exception as error:
    found = error
print(getattr(found, "formatted", found))
interpreters.destroy(other)
"""


@pytest.mark.parametrize(
    "first", ["", "from deltalog import DeltaTable"], ids=["alone", "after the main one"]
)
def test_a_sub_interpreter_is_refused(first: str) -> None:
    run = "exec" if sys.version_info >= (3, 13) else "run_string"
    code = CODE.format(first=first, run=run)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ImportError" in done.stdout, done.stdout
    assert "interpreter" in done.stdout
