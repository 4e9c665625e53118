"""Prints the core's warnings to standard error, and in a terminal also a progress bar for long operations."""

import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from deltalog.bars import Line
from deltalog.escape import visible

__all__ = ["messages"]

_PROGRESS = "deltalog.progress"


class Messages(logging.Handler):
    """Writes messages of the core to standard error. A progress bar is removed before a message is printed."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != _PROGRESS:
            self._line.close()
            text = visible(" ".join(record.getMessage().splitlines()))
            sys.stderr.write(f"{record.levelname.lower()}: {text}\n")


@contextmanager
def messages() -> Iterator[None]:
    """Shows the core's messages and progress while a command runs."""
    ours, line = logging.getLogger("deltalog"), Line(sys.stderr)
    handler, propagates = Messages(line), ours.propagate
    ours.addHandler(handler)
    ours.propagate = False
    try:
        with _bar(line):
            yield
    finally:
        line.close()
        ours.removeHandler(handler)
        ours.propagate = propagates


def _bar(line: Line) -> AbstractContextManager[None]:
    if not line.is_shown:
        return nullcontext()
    from deltalog.observing import progress

    return progress(line.show)
