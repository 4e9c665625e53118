"""Every operation on a table that was damaged on purpose returns rows or raises a typed error.

No call crashes the process, hangs, panics, takes unbounded memory, touches a file outside of the table, or shows a
secret. `DELTALOG_HOSTILE_TABLES=1000-1999` plays these seeds instead of the few that CI plays (`make hostile`).
`DELTALOG_HOSTILE_SPARK_TABLES` does the same for Spark.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ASKED = os.environ.get("DELTALOG_HOSTILE_TABLES", "0-99")
ASKED_OF_SPARK = os.environ.get("DELTALOG_HOSTILE_SPARK_TABLES", "0-19")
# The maximum time in seconds without a line from the process.
MOST_SECONDS = 100


pytestmark = [
    pytest.mark.timeout(0),
    pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there"),
]


def test_nothing_outside_is_touched_and_nothing_crashes(root: Path) -> None:
    play(root, "DELTALOG_HOSTILE_TABLES", ASKED)


def test_the_same_in_spark(root: Path) -> None:
    play(root, "DELTALOG_HOSTILE_SPARK_TABLES", ASKED_OF_SPARK, "spark")


def play(root: Path, setting: str, asked: str, *options: str) -> None:
    first, _, last = asked.partition("-")
    seed, end = int(first), int(last or first) + 1
    faults: list[str] = []
    while seed < end:
        seed, more = played(root, seed, end, *options)
        faults += more
    assert not faults, f"{len(faults)} faults\n" + "\n".join(f"{setting}={fault}" for fault in faults)


def played(root: Path, first: int, end: int, *options: str) -> tuple[int, list[str]]:
    """Plays seeds from `first` on. Returns the next seed and the faults. If the process crashes, this is also a
    fault.
    """
    player = ["-m", "tests.hostile.player", str(first), str(end), *options]
    command = [sys.executable, "-X", "faulthandler", *player]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root, errors="replace"
    )
    assert process.stdout is not None
    assert process.stderr is not None
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []

    def hand_on() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threads = [
        threading.Thread(target=hand_on),
        threading.Thread(target=lambda: errors.extend(process.stderr or ())),
    ]
    for thread in threads:
        thread.start()
    seed, faults = first - 1, []
    ended = "has ended the process"
    while True:
        try:
            line = lines.get(timeout=MOST_SECONDS)
        except queue.Empty:
            process.kill()
            ended = f"took more than {MOST_SECONDS} s"
            continue
        if line is None:
            break
        if line.startswith("seed "):
            seed = int(line.split()[1])
        else:
            faults.append(f"{seed} {json.loads(line.removeprefix('fault '))}")
    for thread in threads:
        thread.join()
    if process.wait() != 0:
        assert seed >= first, "".join(errors)
        faults.append(f"{seed} {ended} ({process.returncode})\n{''.join(errors)[-4000:]}")
        return seed + 1, faults
    return end, faults
