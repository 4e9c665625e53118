"""Tables that streams write to."""

import json
from typing import Any

from deltalog.spark.bridge.role import Role
from deltalog.spark.options import Options
from deltalog.spark.streams import sink as sinks


class StreamSinkCalls(Role):
    """Answers `StreamSinkCalls.java`."""

    def start(self, session: Any, options: str, stream: str, is_named: bool) -> None:
        location = sinks.start(self._jvm, session, Options.of_json(options), sinks.Stream.of_json(stream))
        if is_named:
            sinks.complete_definition(self._jvm, session, location, json.loads(options))

    def write(self, session: Any, options: str, rows: Any, batch: str, sink: Any) -> None:
        sinks.write(self._jvm, session, Options.of_json(options), rows, sinks.Batch.of_json(batch), sink)
