"""Answers Java's calls about tables that streams read."""

from typing import Any

from deltalog.spark.bridge.role import Role
from deltalog.spark.jvm import Jvm
from deltalog.spark.options import Options
from deltalog.spark.read import open_streams
from deltalog.spark.streams import source


class StreamSourceCalls(Role):
    """Answers the calls of `StreamSourceCalls.java`."""

    def __init__(self, jvm: Jvm) -> None:
        super().__init__(jvm)
        open_streams.drop_all()  # Streams that are still open belong to an earlier JVM, which has ended.

    def columns(self, session: Any, options: str, schema: str | None) -> str:
        return source.columns(self._jvm, session, Options.of_json(options), schema)

    def open(self, session: Any, options: str, schema: str, place: str) -> str:
        return source.open_stream(self._jvm, session, Options.of_json(options), schema, place)

    def begin(self, session: Any, stream: str, kept: str | None) -> str:
        return source.begin(self._jvm, session, stream, kept)

    def latest(
        self, session: Any, stream: str, start: str | None, is_unlimited: bool, ends_at_newest: bool
    ) -> str:
        return source.latest(
            self._jvm, session, stream, start, is_unlimited=is_unlimited, ends_at_newest=ends_at_newest
        )

    def batch(self, session: Any, stream: str, start: str | None, end: str) -> str:
        return source.batch(self._jvm, session, stream, start, end)

    def outstanding(self, session: Any, stream: str, start: str | None) -> str:
        return source.outstanding(self._jvm, session, stream, start)

    def release(self, session: Any, stream: str, end: str) -> None:
        source.release(self._jvm, session, stream, end)

    def stop(self, stream: str) -> None:
        source.stop(stream)
