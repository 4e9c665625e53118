"""Answers Java's calls about tables to which streams write."""

import json
from typing import Any

from deltalog.spark.bridge.role import Role
from deltalog.spark.options import Options
from deltalog.spark.streams import sink as sinks


class StreamSinkCalls(Role):
    """Answers the calls of `StreamSinkCalls.java`."""

    def start(self, session: Any, options: str, stream: str, creates: bool) -> None:
        asked, described = Options.of_json(options), sinks.Stream.of_json(stream)
        sinks.start(self._jvm, session, asked, described, creates=creates)

    def define(self, session: Any, options: str) -> None:
        sinks.complete_definition(self._jvm, session, json.loads(options))

    def write(self, session: Any, options: str, rows: Any, batch: str, sink: Any) -> None:
        sinks.write(self._jvm, session, Options.of_json(options), rows, sinks.Batch.of_json(batch), sink)
