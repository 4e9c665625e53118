"""Fragments of scans for other processes."""

from collections.abc import Mapping

from deltalog._internal.stream import ArrowStream
from deltalog.arguments import StoreOptions

def read_fragment(
    fragment: bytes,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    columns: list[str] | None = None,
) -> ArrowStream:
    """Returns the rows of one piece of a scan, in a worker of Spark. The piece contains no credentials.

    By default these are all columns of the table, in its order; `columns` chooses others.
    """
