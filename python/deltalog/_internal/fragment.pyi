"""Fragments of scans for other processes."""

from collections.abc import Mapping

from deltalog._internal.stream import ArrowStream
from deltalog.arguments import StoreOptions

def read_fragment(
    fragment: bytes,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    columns: list[str] | None = None,
) -> ArrowStream:
    """Returns the rows of one piece of a scan, for Spark's workers. It does not carry credentials.

    The columns match the table's, in its order; `columns` replaces them.
    """
