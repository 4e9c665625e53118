"""Exceptions of signal handlers that are raised after a consumer of a stream has returned to Python."""

import signal
from types import FrameType

__all__ = ["raise_in_handler"]


def raise_in_handler(raised: BaseException) -> None:
    """Lets the next SIGINT raise `raised`. Those after it are handled as before.

    Raises:
        TypeError: the handler of SIGINT is not one of Python, and could not be put in its place again.
    """
    earlier = signal.getsignal(signal.SIGINT)
    if earlier is None:
        raise TypeError("the handler of SIGINT is not one of Python")

    def handler(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, earlier)
        raise raised

    signal.signal(signal.SIGINT, handler)
