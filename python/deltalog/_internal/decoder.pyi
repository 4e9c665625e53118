"""Decodes the bytes of files into rows."""

from collections.abc import Sequence
from typing import final

from deltalog._internal.batch import ArrowBatch
from deltalog.arrow_types import ArrowSchemaExportable

@final
class Decoder:
    """Decodes the bytes of a file, which are passed piece by piece.

    If a column cannot represent a value exactly, raises `SchemaMismatchError`, which states the line of the file.
    """

    @staticmethod
    def csv(
        schema: ArrowSchemaExportable,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        null: str = "",
    ) -> Decoder:
        """Reads CSV into columns of `schema`. The first line names the columns, unless `columns` is given."""
    @staticmethod
    def json(schema: ArrowSchemaExportable, optional: Sequence[str]) -> Decoder:
        """Reads JSON lines into columns of `schema`. The columns in `optional` are only read if the first object has
        them.
        """
    @staticmethod
    def arrow() -> Decoder:
        """Reads an Arrow IPC stream or file."""
    def feed(self, piece: bytes) -> list[ArrowBatch]:
        """Returns the batches that are complete with this piece of the file."""
    def finish(self) -> list[ArrowBatch]:
        """Returns the last batches. If the file has no rows, this is one empty batch, so that the columns are known."""
