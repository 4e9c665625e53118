"""The streams that Spark's queries have open, by their ids.

A stream is only kept here, so that nothing of it is left when its query has stopped.
"""

import threading

from deltalog._internal import SparkStream

_lock = threading.Lock()
_open: dict[str, SparkStream] = {}


def find(stream_id: str) -> SparkStream | None:
    """Returns the stream with this id, if it is open."""
    with _lock:
        return _open.get(stream_id)


def keep(stream_id: str, stream: SparkStream) -> None:
    """Keeps a stream under its id, until `drop` or `drop_all`."""
    with _lock:
        _open[stream_id] = stream


def drop(stream_id: str) -> None:
    """Forgets a stream, if it is open."""
    with _lock:
        _open.pop(stream_id, None)


def drop_all() -> None:
    """Forgets all streams."""
    with _lock:
        _open.clear()
