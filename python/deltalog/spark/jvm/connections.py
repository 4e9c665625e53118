"""Connections to the JVM if PySpark does not pin threads (`PYSPARK_PIN_THREAD=false`).

Each connection belongs to a thread of the JVM, and py4j uses any free connection for a call. Job tags and the active
session belong to such a thread, so some work needs the same thread for all its calls. For the duration of such work,
this module gives a Python thread its own connection. The program's other calls are not affected.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from py4j.clientserver import JavaClient
from py4j.java_gateway import GatewayClient

_lock = threading.Lock()


class _Own(threading.local):
    """A thread's own connection, and whether it is free, which means that no call is using it."""

    connection: Any = None
    is_free = False


class ThreadClient(GatewayClient):  # type: ignore[misc]
    """PySpark's py4j client for threads that are not pinned, extended so that a thread can have its own connection."""

    _own: _Own

    def set_thread_connection(self, connection: Any) -> None:
        """Gives this thread the connection on which it serves the JVM, so that its calls run in the JVM's waiting
        thread.
        """
        self._own.connection, self._own.is_free = connection, True

    @contextmanager
    def one_connection(self) -> Iterator[None]:
        """Gives this thread a connection of its own, unless it has one."""
        own = self._own
        if own.connection is not None:
            yield
            return
        # Opens a new connection. An existing one may have been closed, and a call that fails on it could not be
        # repeated on another connection.
        own.connection, own.is_free = self._create_connection(), True
        try:
            yield
        finally:
            connection, is_usable = own.connection, own.is_free
            own.connection, own.is_free = None, False
            if is_usable:
                self._give_back_connection(connection)

    def garbage_collect_object(self, target_id: str) -> None:
        """Releases an object of the JVM, but not on the thread's own connection. Python may collect garbage at any
        time, even while the JVM does not listen on that connection.
        """
        own = self._own
        was_free, own.is_free = own.is_free, False
        try:
            super().garbage_collect_object(target_id)
        finally:
            own.is_free = was_free

    def _get_connection(self) -> Any:
        own = self._own
        if own.is_free:
            own.is_free = False
            return own.connection
        return super()._get_connection()

    def _give_back_connection(self, connection: Any) -> None:
        if connection is self._own.connection:
            self._own.is_free = True
        else:
            super()._give_back_connection(connection)

    def _should_retry(self, retry: bool, connection: Any, pne: Any = None) -> bool:
        """Returns whether a failed call is repeated on another connection. A call on the thread's own connection is
        not, because another connection belongs to another thread of the JVM.
        """
        return connection is not self._own.connection and bool(super()._should_retry(retry, connection, pne))


def thread_client(client: Any) -> Any:
    """Returns a client of py4j that can give a thread a connection of its own. The client of pinned threads always
    does; the other client becomes a `ThreadClient`.
    """
    with _lock:
        if not isinstance(client, JavaClient | ThreadClient):
            client._own = _Own()
            client.__class__ = ThreadClient
    return client


def one_connection(client: Any) -> AbstractContextManager[None]:
    """Makes all calls of this thread run in one thread of the JVM."""
    found = thread_client(client)
    return found.one_connection() if isinstance(found, ThreadClient) else nullcontext()
