"""Keeps the streams that Spark's queries have open, by their ids.

Open streams are kept only in this module, so that nothing remains of a stream when its query has stopped. Spark does
not stop the sources of a query that could not start, so the number of streams is limited. If a stream was dropped, it
is opened again from its description.
"""

import threading
from collections import OrderedDict

from deltalog._internal import TableStream

_KEPT = 256


class OpenStream:
    """A stream that a query reads."""

    def __init__(self, stream: TableStream) -> None:
        self.stream = stream
        self._has_end = False

    def end_at_newest(self) -> None:
        """Makes the stream end after the version that is the newest at its next check. Later calls have no effect."""
        if not self._has_end:
            self._has_end = True
            self.stream.end_at_newest()


_lock = threading.Lock()
_open: "OrderedDict[str, OpenStream]" = OrderedDict()


def find(stream_id: str) -> OpenStream | None:
    """Returns the stream with this id, if it is open."""
    with _lock:
        found = _open.get(stream_id)
        if found is not None:
            _open.move_to_end(stream_id)
        return found


def keep(stream_id: str, stream: TableStream) -> OpenStream:
    """Keeps a stream under its id, until `drop` or `drop_all`."""
    kept = OpenStream(stream)
    with _lock:
        _open[stream_id] = kept
        while len(_open) > _KEPT:
            _open.popitem(last=False)
    return kept


def drop(stream_id: str) -> None:
    """Drops a stream, if it is open."""
    with _lock:
        _open.pop(stream_id, None)


def drop_all() -> None:
    """Drops all streams."""
    with _lock:
        _open.clear()
