"""Reads single Parquet files, which belong to no table."""

from deltalog._internal.stream import ArrowStream

def read_parquet(path: str) -> ArrowStream:
    """Returns the rows of a local Parquet file."""
