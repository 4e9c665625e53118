"""The rows of a Parquet file that belongs to no table."""

from deltalog._internal.stream import ArrowStream

def read_parquet(path: str) -> ArrowStream:
    """Returns the rows of a local file."""
