"""Runs tests repeatedly on a busy machine, and lists the tests that failed.

    python scripts/stress.py [--rounds 10] [--at-once 1] [--load 4] COMMAND...

Each command is run by a shell. While it runs, other processes keep the machine busy: other rounds, if several run
at once, and loops. If a test fails in one of many rounds, it probably waits for a time instead of a condition, or
shares a port or a directory. The output of each command is kept in `.cache/stress`. If several rounds run at
once, `DELTALOG_CRASHED_TABLES` names another directory for each, because they share the build directory.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

LOGS = Path(__file__).resolve().parent.parent / ".cache/stress"
FAILED = re.compile(
    r"^(?:test (?P<cargo>\S+)(?: - .+)? \.\.\. FAILED|(?:FAILED|ERROR) (?P<pytest>\S.*?)(?: - .*)?)$",
    re.MULTILINE,
)
# The child process ends when the process that started it ends, no matter how that happens.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(1_000_000))"


@contextmanager
def load(count: int) -> Iterator[None]:
    """Runs this many processes that keep the machine busy."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def failures(output: str) -> set[str]:
    """Returns the names of failed tests in the output of pytest or `cargo test`."""
    return {found["cargo"] or found["pytest"] for found in FAILED.finditer(output)}


def run(command: str, log: Path, environment: Mapping[str, str]) -> set[str]:
    """Runs a command. Returns the tests that failed, or the command itself if it fails without naming a test."""
    with log.open("w") as output:
        code = subprocess.run(
            ["bash", "-c", command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            check=False,
        ).returncode
    return (failures(log.read_text(errors="replace")) or {command}) if code else set()


def play(number: int, commands: Sequence[str], logs: Path, is_alone: bool) -> tuple[int, set[str], float]:
    """Runs the commands of a round, beside other rounds unless it `is_alone`. Returns its number, what failed, and the
    seconds that it took.
    """
    start = time.monotonic()
    found: set[str] = set()
    crashed_tables = (logs / f"crashed-tables-{number}").resolve()
    environment = {} if is_alone else {"DELTALOG_CRASHED_TABLES": str(crashed_tables)}
    for at, command in enumerate(commands):
        found |= run(command, logs / f"round-{number}-{at}.log", environment)
    return number, found, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=1, help="how many rounds run at the same time")
    parser.add_argument(
        "--load", type=int, default=4, help="how many other processes or rounds run beside each round"
    )
    parser.add_argument("--logs", type=Path, default=LOGS)
    parser.add_argument("commands", nargs="+")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    failed: Counter[str] = Counter()
    with load(options.load - (options.at_once - 1)), ThreadPoolExecutor(options.at_once) as pool:
        numbers = range(1, options.rounds + 1)
        is_alone = options.at_once == 1
        rounds = [pool.submit(play, number, options.commands, options.logs, is_alone) for number in numbers]
        for ended in as_completed(rounds):
            number, found, took = ended.result()
            failed.update(found)
            print(f"round {number} of {options.rounds}: {took:.0f} s, {len(found)} failed", flush=True)
    for name, times in failed.most_common():
        print(f"{times:4} of {options.rounds}  {name}")
    print(f"{len(failed)} tests have failed; the output is in {options.logs}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
