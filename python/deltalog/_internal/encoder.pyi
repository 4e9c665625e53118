"""Encodes rows as the bytes of a file."""

from typing import Literal, final

from deltalog._internal.batch import ArrowBatch
from deltalog.arrow_types import ArrowSchemaExportable

@final
class Encoder:
    """Encodes batches of one schema as JSON lines or as a stream of Arrow IPC."""

    def __new__(cls, form: Literal["json", "arrow"], schema: ArrowSchemaExportable) -> Encoder: ...
    def encode(self, batch: ArrowBatch) -> bytes:
        """Returns the bytes of a batch."""
    def finish(self) -> bytes:
        """Returns the bytes after the last batch."""
