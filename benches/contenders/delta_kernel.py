"""The Rust crate `delta_kernel`, with its default engine and an unmodified `scan_metadata`.

The program of `benches/kernel` calls it and measures the times itself.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from benches.watch import Watch

PROGRAM = "DELTALOG_BENCH_KERNEL"


def open_list(watch: Watch, table: str, *options: str) -> dict[str, Any]:
    done = subprocess.run([os.environ[PROGRAM], table, *options], stdout=subprocess.PIPE, check=True)
    said = json.loads(done.stdout)
    for measure, lap in said["laps"].items():
        watch.took(measure, **lap)
    return {name: said[name] for name in ("version", "files", "bytes")}
