"""Prints messages of the core to standard error: warnings always, and progress only in a terminal.

The core logs the progress of long operations every few seconds. Each message about progress replaces the previous one
in the last line of the terminal.
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
        """Whether the last line shows progress, and is to be replaced by the next message."""

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
        """Removes the line that shows progress."""
        if self.has_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.has_line = False


@contextmanager
def messages() -> Iterator[None]:
    """Prints messages of the core within the `with` statement."""
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
