"""Runs the examples of `docs/orchestration.md` for Dagster and Great Expectations, which are installed from PyPI.

Airflow is too large to install, so its example is only compiled.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fetched import blocks, environment

PAGE = "docs/orchestration.md"


def test_the_examples_are_python(root: Path) -> None:
    examples = blocks(root / PAGE)
    assert sum("airflow" in example for example in examples) == 1
    for number, example in enumerate(examples):
        compile(example, f"{PAGE}, example {number}", "exec")


@pytest.mark.newest
@pytest.mark.thorough(every=0)
@pytest.mark.timeout(900)
def test_the_examples_run(root: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "python", ("dagster>=1.12,<2", "great_expectations>=1.8,<2"))
    program = tmp_path / "example.py"
    program.write_text("\n".join(example for example in blocks(root / PAGE) if "airflow" not in example))
    done = subprocess.run(
        [str(python), str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"DAGSTER_DISABLE_TELEMETRY": "1", "GX_ANALYTICS_ENABLED": "false"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
