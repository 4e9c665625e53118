"""Measures time and memory inside the process that does the work.

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
    # This number is only a fallback, because on Linux a process inherits it from its parent.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Watch:
    """Measures the laps of one operation.

    - A lap covers the work of the contender, without the preparation and the check of its answer.
    - Laps can be nested. A lap that raises is not recorded.
    - `cpu_seconds` is the processor time of all threads of this process. Other load on the machine affects it less
      than the elapsed time. It is not recorded for laps that include the work of another process.
    """

    def __init__(self) -> None:
        self.laps: dict[str, dict[str, float]] = {}
        self._also: list[int] = []

    def also(self, process: int) -> None:
        """Adds the memory of another process, such as the JVM of a Spark session, to the contender's memory."""
        self._also.append(process)

    def took(self, measure: str, seconds: float, peak_bytes: int) -> None:
        """Records a lap that a program has measured with its own clock, and the program's memory without the memory of
        the process that started it.
        """
        self.laps[measure] = {"seconds": seconds, "peak_bytes": peak_bytes}

    def note(self, measure: str, quantity: str, number: float) -> None:
        """Adds to a lap a quantity other than time and peak memory."""
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
