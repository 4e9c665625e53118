"""Time and memory, measured inside the process that does the work.

It uses the standard library only, because the process of every contender imports it.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time


def peak_bytes(process: int | None = None) -> int:
    """Returns the peak memory of a process (None: this one) since it started."""
    status = Path(f"/proc/{process or 'self'}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if process is not None:
        raise OSError(f"the memory of process {process} is not to be had on {sys.platform}")
    # This is only a fallback, because on Linux a process inherits this number from its parent.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Watch:
    """Measures the laps of one operation.

    - A lap covers what the contender does, not the preparation or the checking of its answer.
    - Laps can be nested. A lap that raises is not recorded.
    - `cpu_seconds` is the processor time of all threads of this process. It depends less on other load on the machine
      than the time does. A lap that includes another process does not have it.
    """

    def __init__(self) -> None:
        self.laps: dict[str, dict[str, float]] = {}
        self._also: list[int] = []

    def also(self, process: int) -> None:
        """Counts the memory of another process, such as the JVM of a Spark session, as the contender's."""
        self._also.append(process)

    def took(self, measure: str, seconds: float, peak_bytes: int) -> None:
        """Records a lap that a program has measured itself, with its own clock, and its memory without its
        parent's.
        """
        self.laps[measure] = {"seconds": seconds, "peak_bytes": peak_bytes}

    def note(self, measure: str, quantity: str, number: float) -> None:
        """Adds a quantity to a lap that is neither time nor peak."""
        self.laps[measure][quantity] = number

    @contextmanager
    def __call__(self, measure: str) -> Iterator[None]:
        start, used = perf_counter(), process_time()
        yield
        seconds, used = perf_counter() - start, process_time() - used
        peak = peak_bytes() + sum(peak_bytes(process) for process in self._also)
        self.laps[measure] = {"seconds": seconds, "peak_bytes": peak}
        if not self._also:
            self.laps[measure]["cpu_seconds"] = used
