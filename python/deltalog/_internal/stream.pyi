"""Arrow streams and schemas out."""

from typing import final

from deltalog.arrow_types import ArrowSchemaExportable

@final
class ArrowStream:
    """Record batches that can be read once, by any consumer of the Arrow PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def schema_to_arrow(json: str) -> ArrowSchemaExportable:
    """Returns the Arrow schema of a Delta schema."""

def schema_from_arrow(schema: ArrowSchemaExportable) -> str:
    """Returns the Delta schema, as JSON, of an Arrow schema."""
