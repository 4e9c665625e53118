"""Converts rows of the compiled module to dictionaries, for programs without an Arrow library."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalog._internal import ArrowStream

__all__ = ["objects"]


def objects(stream: "ArrowStream") -> Iterator[dict[str, Any]]:
    """Yields the rows of an Arrow stream, such as the history, as dictionaries with JSON values."""
    from deltalog._internal import Encoder

    encoder = Encoder("json", stream)
    for batch in stream:
        for line in encoder.encode(batch).splitlines():
            yield json.loads(line)
