"""Types of the Arrow data that deltalog accepts: protocol classes for the Arrow PyCapsule interface, which all Arrow
libraries implement, and for Polars lazy frames.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

__all__ = ["ArrowArrayExportable", "ArrowData", "ArrowSchemaExportable", "ArrowStreamExportable", "LazyRows"]


class ArrowStreamExportable(Protocol):
    """Rows in batches, such as a pyarrow table or reader, or a Polars or pandas 3 DataFrame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns a capsule."""
        ...


class ArrowArrayExportable(Protocol):
    """Rows in one batch, such as a pyarrow `RecordBatch`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        """Returns two capsules."""
        ...


class ArrowSchemaExportable(Protocol):
    """Columns with their types, such as a `Schema` of deltalog or pyarrow."""

    def __arrow_c_schema__(self) -> object:
        """Returns a capsule."""
        ...


class LazyRows(Protocol):
    """Rows that Polars has yet to compute: a `LazyFrame`."""

    def collect_schema(self) -> Any:
        """Returns the names and types of the columns."""
        ...

    def collect(self) -> Any:
        """Computes the rows."""
        ...


_Rows: TypeAlias = ArrowStreamExportable | ArrowArrayExportable

ArrowData: TypeAlias = _Rows | Sequence[_Rows] | Iterator[_Rows] | LazyRows
"""Rows that can be written: Arrow data, a list or generator of Arrow data with the same columns, or a Polars lazy
frame.
"""
