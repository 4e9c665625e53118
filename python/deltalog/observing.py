"""Reports the progress of long operations: `with deltalog.progress(): …`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from deltalog import _internal
from deltalog.errors import wrong_argument

__all__ = ["Progress", "progress"]

_INTERVAL = 0.1
"""The time between two reports, in seconds."""


@dataclass(frozen=True)
class Progress:
    """What an operation has done so far."""

    operation: str
    """The name of the operation, such as `OPTIMIZE`."""
    table: str
    """The location of the table."""
    done: int
    """The amount of work that is done, in the unit `unit`."""
    all: int | None
    """The total amount of work, if it is known. It may be an estimate."""
    unit: str
    """The unit of `done` and `all`, such as `bytes`, `files` or `rows`."""
    is_finished: bool
    """Whether the operation has ended, successfully or not."""
    id: int
    """A number that identifies the operation in this process."""


def progress(show: Callable[[Progress], object] | None = None) -> AbstractContextManager[None]:
    """Shows the progress of the long operations that begin within the `with` block, in all threads of the process.

    Operations are scans, writes, DELETE, UPDATE, MERGE, OPTIMIZE, VACUUM, RESTORE, CONVERT, CLONE, FSCK, checkpoints.
    One call may consist of several operations. Operations do not wait for `show`, so it does not slow them down. Before
    the block ends, every operation is reported one last time, with its final numbers.

    Args:
        show: a function that is called ten times a second with a `Progress` for each operation, on a separate thread.
            By default, a progress bar is drawn: in notebooks with tqdm or rich if one of them is installed, and
            otherwise as a line on standard error if it is a terminal.

    Raises:
        InvalidArgumentError: `show` is not a function.
        Exception: an exception that `show` has raised. It is raised again at the end of the block; `show` is not called
            again.
    """
    if show is not None and not callable(show):
        raise wrong_argument("show", show, "a function of one argument, or None")
    return _drawing() if show is None else _reporting(show)


@contextmanager
def _drawing() -> Iterator[None]:
    from deltalog.bars import bars

    with bars() as draw, _reporting(draw):
        yield


@contextmanager
def _reporting(show: Callable[[Progress], object]) -> Iterator[None]:
    observer, ended = _internal.ProgressObserver(), threading.Event()
    raised: list[BaseException] = []

    def report() -> None:
        try:
            for id_, operation, table, done, every, unit, is_finished in observer.reports():
                show(Progress(operation, table, done, every, unit, is_finished, id_))
        except BaseException as error:  # noqa: BLE001 (it is raised at the end of the block)
            raised.append(error)

    def work() -> None:
        while not raised and not ended.wait(_INTERVAL):
            report()

    thread = threading.Thread(target=work, name="deltalog-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if not raised:
            report()
    if raised:
        raise raised[0]
