"""Prints messages of the core on standard error: warnings always, progress only in a terminal.

The core logs the progress of long operations every few seconds. In a terminal, one line is overwritten again and again;
in a pipe, progress is not shown.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from deltalog.escape import visible

__all__ = ["messages"]

_PROGRESS = "deltalog.progress"


class Messages(logging.Handler):
    """Writes messages of the core to standard error."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.has_line = False
        """Whether the last line is progress, which the next message replaces."""

    def emit(self, record: logging.LogRecord) -> None:
        text = visible(" ".join(record.getMessage().splitlines()))
        if record.name == _PROGRESS:
            if self.is_terminal:
                self.clear()
                sys.stderr.write(text)
                sys.stderr.flush()
                self.has_line = True
            return
        self.clear()
        sys.stderr.write(f"{record.levelname.lower()}: {text}\n")

    def clear(self) -> None:
        """Removes the line of progress."""
        if self.has_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.has_line = False


@contextmanager
def messages() -> Iterator[None]:
    """Shows the core's messages while a command runs."""
    ours, progress = logging.getLogger("deltalog"), logging.getLogger(_PROGRESS)
    handler, level, propagates = Messages(is_terminal=sys.stderr.isatty()), progress.level, ours.propagate
    ours.addHandler(handler)
    ours.propagate = False
    progress.setLevel(logging.INFO if handler.is_terminal else logging.WARNING)
    try:
        yield
    finally:
        handler.clear()
        ours.removeHandler(handler)
        ours.propagate = propagates
        progress.setLevel(level)
