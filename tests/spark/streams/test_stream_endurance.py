"""The memory of a stream with many small batches does not keep growing, neither in Python nor in the JVM."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

BATCHES = 300
# The maximum growth of memory in MB. A leak of 60 KB per batch would exceed it.
SLACK = 12


@pytest.mark.newest
@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_memory_does_not_grow_with_the_number_of_batches(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.streams.endurance", str(tmp_path), str(BATCHES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    *samples, result = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert result == {"rows": BATCHES + 1}
    early, late = samples[1], samples[-1]
    assert late["batches"] - early["batches"] == BATCHES * 2 // 3
    for kind in ("python", "heap"):
        assert late[kind] - early[kind] < SLACK, samples
