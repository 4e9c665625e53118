"""Runs code in separate Python processes, for tests that start, stop or misconfigure Spark."""

import os
import subprocess
import sys
import textwrap


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a new interpreter and returns its output."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, **environment},
        check=False,
    )
