"""Sends signals while a call runs, as if a user pressed Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

PATIENCE = 30.0
"""How long tests wait at most, in seconds, for an event that should happen soon."""


class pressing(AbstractContextManager[None]):  # noqa: N801
    """Sends SIGINT to this process as soon as `when` returns True. With several functions, it sends one signal for
    each, one after another.

    This class is not written as a generator: if a generator is interrupted while it is entered, the garbage collector
    closes it later, in any thread.
    """

    def __init__(self, *when: Callable[[], object]) -> None:
        self._when = when
        self._is_over = threading.Event()
        # The other thread must not send a signal while this thread is still starting it, so it waits for this lock.
        # Releasing a lock is a single call of C code, which a signal cannot interrupt.
        self._may_press = threading.Lock()
        self._thread = threading.Thread(target=self._press)
        self._handler = signal.getsignal(signal.SIGINT)

    def _press(self) -> None:
        with self._may_press:
            pass
        for is_time in self._when:
            until = time.monotonic() + PATIENCE
            while not is_time() and time.monotonic() < until:
                if self._is_over.wait(0.005):
                    return
            os.kill(os.getpid(), signal.SIGINT)

    def __enter__(self) -> None:
        self._may_press.acquire()
        self._thread.start()
        if self._handler == signal.SIG_IGN:  # Shells start background processes like this.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self._may_press.release()
        except BaseException:
            # If the signal arrives before this method returns, only this code can end the thread.
            self._end()
            raise

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        try:
            self._is_over.set()
            self._thread.join()
        finally:
            signal.signal(signal.SIGINT, self._handler)


def after(seconds: float) -> Callable[[], bool]:
    """Returns a function that returns True once this many seconds have passed since its first call."""
    begun: list[float] = []

    def is_over() -> bool:
        if not begun:
            begun.append(time.monotonic())
        return time.monotonic() - begun[0] >= seconds

    return is_over


def soon_after(is_time: Callable[[], bool]) -> Callable[[], bool]:
    """Returns a function that returns True once a fifth of a second has passed since `is_time` first returned True."""
    rest = after(0.2)
    return lambda: is_time() and rest()
