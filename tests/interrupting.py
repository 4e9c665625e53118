"""Signals that come while a call runs, as when somebody presses Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 30.0
"""How long something is waited for that happens soon, in seconds."""


@contextmanager
def pressing(*when: Callable[[], object]) -> Iterator[None]:
    """Sends this process a SIGINT as soon as `when` returns something true, for each of them, one after another."""
    is_over = threading.Event()
    # A lock, which is released by one call of C: a signal must not come while this thread starts the other.
    may_press = threading.Lock()

    def press() -> None:
        with may_press:
            pass
        for is_time in when:
            until = time.monotonic() + PATIENCE
            while not is_time() and time.monotonic() < until:
                if is_over.wait(0.005):
                    return
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    may_press.acquire()
    thread.start()
    handler = signal.getsignal(signal.SIGINT)
    if handler == signal.SIG_IGN:  # So a shell starts what runs in the background.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        may_press.release()
        yield
    finally:
        is_over.set()
        thread.join()
        signal.signal(signal.SIGINT, handler)


def after(seconds: float) -> Callable[[], bool]:
    """Returns what becomes true this long after it was asked first."""
    begun: list[float] = []

    def is_over() -> bool:
        if not begun:
            begun.append(time.monotonic())
        return time.monotonic() - begun[0] >= seconds

    return is_over


def soon_after(is_time: Callable[[], bool]) -> Callable[[], bool]:
    """Returns what becomes true a fifth of a second after `is_time`."""
    rest = after(0.2)
    return lambda: is_time() and rest()
