"""Cancellation of a write by Ctrl-C: its jobs are cancelled, and nothing is committed.

The JVM may call back in a Python thread that differs from the one that waits for the statement. In that case,
`KeyboardInterrupt` reaches only the waiting thread. PySpark's attempt to cancel the jobs fails, because it uses the
connection on which this thread waits. Therefore each running write is registered here, and the signal marks it before
PySpark's handler runs. A write is either marked or past `begin_commit`, never both.
"""

import logging
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from deltalog.spark.jvm.py4j_errors import Py4JError

_log = logging.getLogger("deltalog.spark")

_CANCEL_EVERY_SECONDS = 0.2
_JOBS_START_WITHIN_SECONDS = 30.0
_TASKS_END_WITHIN_SECONDS = 10.0

_lock = threading.RLock()  # The lock is reentrant, because the signal may arrive in a thread that holds it.
_running: set["RunningWrite"] = set()


class RunningWrite:
    """A write between its start and its commit, whose Spark jobs have the tag `tag`. `session` is the JVM's.

    `ensure_wanted` raises an exception if the write was stopped in another way than by a signal.
    """

    def __init__(self, session: Any, ensure_wanted: Callable[[], object] | None = None) -> None:
        self.tag = f"deltalog-write-{uuid.uuid4()}"
        self._session = session
        self._ensure_wanted = ensure_wanted
        self._interrupted = False

    def check(self) -> None:
        self._check_interrupt()
        if self._ensure_wanted is not None:
            self._ensure_wanted()

    def _check_interrupt(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt("the write was interrupted; nothing was committed")

    def begin_commit(self) -> None:
        """Ends the period in which an interrupt can stop the write."""
        self.check()
        with _lock:
            self._check_interrupt()
            _running.discard(self)

    def interrupt(self) -> None:
        self._interrupted = True
        # Use another thread, because this thread's connection to the JVM may be in the middle of a call.
        threading.Thread(target=self._cancel, name="deltalog-cancel", daemon=True).start()

    def wait_for_tasks(self) -> None:
        """Waits until no task of the jobs runs, but not forever.

        Spark may report that a job has failed while some of its tasks, which it has asked to end, are still running.
        """
        status = self._session.sparkContext().statusTracker()
        stages = [
            stage
            for job in status.getJobIdsForTag(self.tag)
            if (known := status.getJobInfo(job)).isDefined()
            for stage in known.get().stageIds()
        ]
        end = time.monotonic() + _TASKS_END_WITHIN_SECONDS
        for stage in stages:
            while (
                (known := status.getStageInfo(stage)).isDefined()
                and known.get().numActiveTasks()
                and time.monotonic() < end
            ):
                time.sleep(0.01)

    @contextmanager
    def tagging(self) -> Iterator[None]:
        """Gives the tag to all jobs that this thread starts. A `FileJob` and a statement tag their jobs themselves."""
        from deltalog.spark.jvm.connections import one_connection  # Imported here because it needs py4j.

        with one_connection(self._session._gateway_client):
            context = self._session.sparkContext()
            context.addJobTag(self.tag)
            try:
                yield
            finally:
                context.removeJobTag(self.tag)

    def _cancel(self) -> None:
        """Cancels the jobs of the write repeatedly until it has ended, and for a while longer.

        The interrupt may arrive before a job has started, and a write may have several jobs. If the interrupt ends the
        thread that waits for the JVM, the JVM continues: it may still be planning a job.
        """
        end = time.monotonic() + _JOBS_START_WITHIN_SECONDS
        while self in _running or time.monotonic() < end:
            try:
                context = self._session.sparkContext()
                if context.isStopped():
                    return  # All jobs have ended with the application.
                context.cancelJobsWithTag(self.tag)
            except Py4JError as error:
                # The JVM may have ended. If it has not, the next attempt may succeed.
                _log.debug("the jobs of an interrupted write could not be cancelled: %s", error)
            time.sleep(_CANCEL_EVERY_SECONDS)


@contextmanager
def running_write(session: Any, ensure_wanted: Callable[[], object] | None = None) -> Iterator[RunningWrite]:
    """Registers a write of a session of the JVM."""
    write = RunningWrite(session, ensure_wanted)
    with _lock:
        _running.add(write)
    try:
        yield write
    finally:
        with _lock:
            _running.discard(write)


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    with _lock:
        for write in list(_running):
            write.interrupt()
    try:
        _previous(number, frame)
    except Exception as error:
        # The handler of PySpark 4.0 fails because the connection is in use. The handlers of newer releases raise
        # KeyboardInterrupt.
        raise KeyboardInterrupt from error


_previous: Any = signal.default_int_handler


def install() -> None:
    """Installs our handler, which then calls the previous one.

    Does nothing outside of the main thread, because only the main thread may set a handler.
    """
    global _previous
    if threading.current_thread() is not threading.main_thread():
        return
    current = signal.getsignal(signal.SIGINT)
    if current is not _on_interrupt and callable(current):
        _previous = current
        signal.signal(signal.SIGINT, _on_interrupt)
