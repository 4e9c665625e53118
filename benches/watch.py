"""Time and memory, taken inside the process that does the work.

Standard library only: every contender's process imports this.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter


def peak_bytes(process: int | None = None) -> int:
    """The most memory that a process (None: this one) has held at once since it started."""
    status = Path(f"/proc/{process or 'self'}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if process is not None:
        raise OSError(f"the memory of process {process} is not to be had on {sys.platform}")
    # Second choice: Linux hands this number down from the parent process.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Watch:
    """Takes the laps of one operation.

    - A lap holds what the contender does, nothing of the preparation and of the checking of its answer.
    - Laps may be nested; one that raises is not taken.
    """

    def __init__(self) -> None:
        self.laps: dict[str, dict[str, float]] = {}
        self._also: list[int] = []

    def also(self, process: int) -> None:
        """Counts the memory of another process, such as the JVM of a Spark session, as the contender's."""
        self._also.append(process)

    def took(self, measure: str, seconds: float, peak_bytes: int) -> None:
        """Takes over a lap that a program has taken of itself:

        its clock, and its memory without that of the process that started it.
        """
        self.laps[measure] = {"seconds": seconds, "peak_bytes": peak_bytes}

    def note(self, measure: str, quantity: str, number: float) -> None:
        """Adds to a lap what is neither time nor peak."""
        self.laps[measure][quantity] = number

    @contextmanager
    def __call__(self, measure: str) -> Iterator[None]:
        start = perf_counter()
        yield
        seconds = perf_counter() - start
        peak = peak_bytes() + sum(peak_bytes(process) for process in self._also)
        self.laps[measure] = {"seconds": seconds, "peak_bytes": peak}
