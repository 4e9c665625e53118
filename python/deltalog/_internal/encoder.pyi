"""Encodes rows as the bytes of a file."""

from typing import Literal, final

from deltalog._internal.batch import ArrowBatch
from deltalog.arrow_types import ArrowSchemaExportable

@final
class Encoder:
    """Encodes batches with the same schema as JSON lines, CSV, an Arrow IPC stream, or Parquet."""

    def __new__(
        cls,
        form: Literal["json", "csv", "arrow", "parquet"],
        schema: ArrowSchemaExportable,
        delimiter: str = ",",
        null: str = "",
        has_names: bool = True,
    ) -> Encoder:
        """Begins a file. The delimiter, the text for NULL and the header line only matter for CSV."""
    def encode(self, batch: ArrowBatch) -> bytes:
        """Returns the encoded bytes of a batch."""
    def finish(self) -> bytes:
        """Returns the bytes that end the file, after the last batch."""
