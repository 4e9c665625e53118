"""Reads single Parquet files that do not belong to a table."""

from deltalog._internal.stream import ArrowStream

def read_parquet(path: str) -> ArrowStream:
    """Returns the rows of a local Parquet file."""
