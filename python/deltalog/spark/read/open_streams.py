"""The streams that Spark's queries have open, by their ids.

A stream is only kept here, so that nothing of it is left when its query has stopped. Spark does not stop the sources of
a query that it could not begin. So the number is limited; one that is forgotten is made again from its text.
"""

import threading
from collections import OrderedDict

from deltalog._internal import SparkStream

_KEPT = 256

_lock = threading.Lock()
_open: "OrderedDict[str, SparkStream]" = OrderedDict()


def find(stream_id: str) -> SparkStream | None:
    """Returns the stream with this id, if it is open."""
    with _lock:
        found = _open.get(stream_id)
        if found is not None:
            _open.move_to_end(stream_id)
        return found


def keep(stream_id: str, stream: SparkStream) -> None:
    """Keeps a stream under its id, until `drop` or `drop_all`."""
    with _lock:
        _open[stream_id] = stream
        while len(_open) > _KEPT:
            _open.popitem(last=False)


def drop(stream_id: str) -> None:
    """Forgets a stream, if it is open."""
    with _lock:
        _open.pop(stream_id, None)


def drop_all() -> None:
    """Forgets all streams."""
    with _lock:
        _open.clear()
