"""Prepares Arrow data from other libraries so that the compiled module can import it."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deltalog.arrow_types import ArrowData

if TYPE_CHECKING:
    import polars
    import pyarrow

__all__ = ["computed", "importable"]


def importable(data: ArrowData) -> ArrowData:
    """Returns an Arrow stream unchanged, except that deeply nested pyarrow columns lose their offsets.

    In pyarrow, a slice is an offset into the whole array. The C interface passes this offset on, but arrow-rs 59 adds
    it once more for each nested struct or fixed-size list, and panics. Such columns are therefore copied, batch by
    batch.
    """
    # If pyarrow was not imported, the data cannot come from pyarrow.
    if "pyarrow" not in sys.modules:
        return data
    import pyarrow

    given: Any = data
    if not isinstance(given, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.RecordBatchReader)):
        return data
    deep = {index for index, field in enumerate(given.schema) if _is_deep(field.type)}
    if not deep:
        return data
    if isinstance(given, pyarrow.RecordBatchReader):
        batches = iter(given)
    else:
        batches = iter(given.to_batches() if isinstance(given, pyarrow.Table) else [given])
    copied: ArrowData = pyarrow.RecordBatchReader.from_batches(given.schema, _copied(batches, deep))
    return copied


def computed(data: object) -> object:
    """Returns data unchanged, except for a Polars lazy frame, which the streaming engine of Polars computes.

    From Polars 1.34 on, the frame is computed batch by batch.
    """
    # If Polars was not imported, the data cannot be a Polars frame.
    if "polars" not in sys.modules:
        return data
    import polars

    return _batches(data) if isinstance(data, polars.LazyFrame) else data


def _batches(frame: "polars.LazyFrame") -> "Iterator[polars.DataFrame]":
    """Yields the rows of a lazy frame. The first batch is empty and only provides the schema, in case the frame has no
    rows.
    """
    import polars

    yield polars.DataFrame(schema=frame.collect_schema())
    if hasattr(frame, "collect_batches"):
        yield from frame.collect_batches(engine="streaming", lazy=True)
    else:  # Polars is older than 1.34.
        yield frame.collect(engine="streaming")


def _is_deep(data_type: "pyarrow.DataType") -> bool:
    """Returns whether a slice of an array of this type also slices a child array that has children itself."""
    import pyarrow.types

    data_type = _stored(data_type)
    inside: list[pyarrow.DataType] = []
    if pyarrow.types.is_struct(data_type):
        inside = [field.type for field in data_type]
    elif pyarrow.types.is_fixed_size_list(data_type):
        inside = [data_type.value_type]
    return any(pyarrow.types.is_nested(_stored(part)) for part in inside)


def _stored(data_type: "pyarrow.DataType") -> "pyarrow.DataType":
    return getattr(data_type, "storage_type", data_type)


def _copied(batches: "Iterator[pyarrow.RecordBatch]", columns: set[int]) -> "Iterator[pyarrow.RecordBatch]":
    """Copies the `columns` that have an offset."""
    import pyarrow

    for batch in batches:
        arrays = [
            pyarrow.concat_arrays([array]) if index in columns and array.offset else array
            for index, array in enumerate(batch.columns)
        ]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=batch.schema)
