"""Rows of the core as dictionaries, for programs without an Arrow library."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalog._internal import ArrowStream

__all__ = ["objects"]


def objects(stream: "ArrowStream") -> Iterator[dict[str, Any]]:
    """Yields the rows of a stream of the log as dictionaries, with the values that they have in JSON."""
    from deltalog._internal import Encoder

    encoder = Encoder("json", stream)
    for batch in stream:
        for line in encoder.encode(batch).splitlines():
            yield json.loads(line)
