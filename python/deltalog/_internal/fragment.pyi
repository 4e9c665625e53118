"""Fragments of scans for other processes."""

from collections.abc import Mapping

from deltalog._internal.stream import ArrowStream
from deltalog.arguments import StoreOptions

def read_fragment(
    fragment: bytes,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    columns: list[str] | None = None,
) -> ArrowStream:
    """Reads the rows of a fragment, for example in a Spark worker. A fragment contains no credentials, so they must be
    passed as options.

    `columns` replaces the fragment's own columns.
    """
