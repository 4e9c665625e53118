"""Rows from the bytes of a file."""

from collections.abc import Sequence
from typing import final

from deltalog._internal.batch import ArrowBatch
from deltalog.arrow_types import ArrowSchemaExportable

@final
class Decoder:
    """Decodes the bytes of a file, which come in pieces.

    A value either fits its column exactly or raises `SchemaMismatchError` with its line.
    """

    @staticmethod
    def csv(
        schema: ArrowSchemaExportable,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        null: str = "",
    ) -> Decoder:
        """Reads CSV into columns of `schema`. The first line names them, unless `columns` does."""
    @staticmethod
    def json(schema: ArrowSchemaExportable, optional: Sequence[str]) -> Decoder:
        """Reads JSON lines into columns of `schema`. Columns in `optional` are read if the first object has them."""
    @staticmethod
    def arrow() -> Decoder:
        """Reads a stream or a file of Arrow IPC."""
    def feed(self, piece: bytes) -> list[ArrowBatch]:
        """Returns the batches that are complete with this piece of the file."""
    def finish(self) -> list[ArrowBatch]:
        """Returns the last batches. There is at least one in all, so that the columns are known."""
