"""Writes Arrow data and commits it."""

from collections.abc import Mapping

from deltalog._internal.commit_arguments import AlreadyApplied
from deltalog._internal.snapshot import Snapshot
from deltalog.arguments import StoreOptions
from deltalog.arrow_types import ArrowData
from deltalog.commit import WriteArguments

def write_stream(
    uri: str,
    stream: ArrowData,
    arguments: WriteArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    base: Snapshot | None = None,
) -> int | AlreadyApplied | None:
    """Writes an Arrow stream and commits it; see `write_deltalake`. `base` has the same meaning as in
    `SparkWrite.begin`.
    """
