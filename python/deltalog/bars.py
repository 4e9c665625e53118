"""Progress bars for long operations: in notebooks with tqdm or rich, in terminals as one line."""

import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from deltalog.escape import visible
from deltalog.words import size

if TYPE_CHECKING:
    from deltalog.observing import Progress

__all__ = ["Line", "bars"]

_PATIENCE = 0.5
"""An operation gets a bar after this number of seconds, so that short operations get none."""


@contextmanager
def bars() -> Iterator["Callable[[Progress], None]"]:
    """Returns a context manager that provides a function which draws the bars. At the end of the block, bars are
    removed, or completed.
    """
    drawn = (_notebook() if "ipykernel" in sys.modules else None) or Line(sys.stderr)
    try:
        yield drawn.show
    finally:
        drawn.close()


def _notebook() -> "_Tqdm | _Rich | None":
    for module, kind in (("tqdm.auto", _Tqdm), ("rich.progress", _Rich)):
        try:
            return kind(importlib.import_module(module))
        except ImportError:
            continue
    return None


class Line:
    """Draws a bar for the operation that began last, in the last line of a terminal. If there is no terminal, nothing
    is drawn.
    """

    def __init__(self, stream: TextIO, *, patience: float = _PATIENCE) -> None:
        self._stream = stream
        self.is_shown = stream.isatty() and os.environ.get("TERM") != "dumb"
        """Whether standard error is a terminal."""
        encoding = (getattr(stream, "encoding", None) or "ascii").lower()
        self._marks = "█░" if encoding.startswith("utf") else "#."
        self._patience = patience
        self._begun: dict[int, float] = {}
        self._has_line = False

    def show(self, progress: "Progress") -> None:
        """Draws the progress that an operation reports."""
        if not self.is_shown:
            return
        begun = self._begun.setdefault(progress.id, time.monotonic())
        if progress.is_finished:
            del self._begun[progress.id]
            if not self._begun:
                self.close()
        elif time.monotonic() - begun >= self._patience and progress.id == max(self._begun):
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{line_of(progress, width, self._marks)}")
            self._stream.flush()
            self._has_line = True

    def close(self) -> None:
        """Removes the line."""
        if self._has_line:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._has_line = False


def line_of(progress: "Progress", width: int, marks: str) -> str:
    """Returns the progress of an operation as a line of at most `width` characters."""
    done, every = progress.done, progress.all
    amount = size(done) if progress.unit == "bytes" else f"{done:,} {progress.unit}"
    if not every:
        return visible(f"{progress.operation}: {amount}")[:width]
    # The total may be an estimate.
    share = min(done / every, 1.0)
    whole = size(every) if progress.unit == "bytes" else f"{every:,} {progress.unit}"
    part = size(done) if progress.unit == "bytes" else f"{done:,}"
    texts = [visible(progress.operation), f"{share:4.0%}", f"{part} of {whole}"]
    room = min(width - sum(map(len, texts)) - 3, 40)
    if room < 8:
        return " ".join(texts)[:width]
    full = int(share * room)
    return f"{texts[0]} {marks[0] * full}{marks[1] * (room - full)} {texts[1]} {texts[2]}"


class _Tqdm:
    """Draws a bar of tqdm for each operation."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._bars: dict[int, Any] = {}

    def show(self, progress: "Progress") -> None:
        bar = self._bars.get(progress.id)
        if bar is None:
            is_bytes = progress.unit == "bytes"
            bar = self._bars[progress.id] = self._module.tqdm(
                total=progress.all,
                desc=visible(progress.operation),
                unit="B" if is_bytes else f" {progress.unit}",
                unit_scale=True,
                unit_divisor=1024 if is_bytes else 1000,
                delay=_PATIENCE,
            )
        bar.update(progress.done - bar.n)
        if progress.is_finished:
            del self._bars[progress.id]
            bar.close()

    def close(self) -> None:
        for bar in self._bars.values():
            bar.close()


class _Rich:
    """Draws a bar of rich for each operation."""

    def __init__(self, module: Any) -> None:
        self._live = module.Progress()
        self._live.start()
        self._tasks: dict[int, Any] = {}

    def show(self, progress: "Progress") -> None:
        task = self._tasks.get(progress.id)
        if task is None:
            name = f"{visible(progress.operation)} ({progress.unit})"
            task = self._tasks[progress.id] = self._live.add_task(name, total=progress.all)
        self._live.update(task, completed=progress.done)

    def close(self) -> None:
        self._live.stop()
