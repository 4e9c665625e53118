"""Arrow streams and schemas from the core."""

from typing import Any, final

from deltalog._internal.batch import ArrowBatch
from deltalog.arrow_types import ArrowData, ArrowSchemaExportable

@final
class ArrowStream:
    """Record batches that can be read once, by any consumer of the Arrow PyCapsule interface.

    A program without an Arrow library can iterate over the stream; a failure then raises a `DeltaError`. If a stream
    that was read in part is passed to an Arrow library, the library gets the remaining batches.
    """

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    @property
    def schema(self) -> Any:
        """The schema, as a `pyarrow.Schema`."""
    def read_all(self) -> Any:
        """Returns the rows that have not been read yet, as a `pyarrow.Table`."""
    def __iter__(self) -> ArrowStream: ...
    def __next__(self) -> ArrowBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def arrow_stream(data: ArrowData) -> ArrowStream:
    """Returns the rows of an object of another library, as a stream whose batches are read one by one.

    Raises `InvalidArgumentError` if the object is not Arrow data, or if it raises an error before its first batch.
    """

def schema_to_arrow(json: str) -> ArrowSchemaExportable:
    """Converts a Delta schema to an Arrow schema that includes the metadata of the fields."""

def schema_from_arrow(schema: ArrowSchemaExportable) -> str:
    """Converts an Arrow schema to a Delta schema as JSON."""
