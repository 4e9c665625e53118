"""Handles Ctrl-C when it arrives outside of the Rust code: between the steps of a call, or in a consumer of a
stream.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from deltalog._internal import AlreadyApplied
from deltalog.errors import CommittedInterrupt, UnknownCommitInterrupt

__all__ = ["after_commit", "raise_in_handler"]


@contextmanager
def after_commit(location: Callable[[], str], committed: int | AlreadyApplied | None) -> Iterator[None]:
    """Turns a `KeyboardInterrupt` into a `CommittedInterrupt` if an earlier step of the same call has already
    committed.
    """
    try:
        yield
    except (CommittedInterrupt, UnknownCommitInterrupt):
        raise
    except KeyboardInterrupt as interrupt:
        if not isinstance(committed, int):
            raise
        table = location()
        told = CommittedInterrupt(f"interrupted after version {committed} of the table {table} was committed")
        told.table, told.version, told.versions = table, committed, (committed,)
        raise told from interrupt


def raise_in_handler(raised: BaseException) -> None:
    """Makes the next SIGINT raise the exception `raised`. Later signals are handled as before.

    Raises:
        TypeError: the handler of SIGINT was not installed from Python, so it could not be restored afterwards.
    """
    earlier = signal.getsignal(signal.SIGINT)
    if earlier is None:
        raise TypeError("the handler of SIGINT was not installed from Python")

    def handler(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, earlier)
        raise raised

    signal.signal(signal.SIGINT, handler)
