"""Creates tables from a definition, with or without rows."""

from collections.abc import Mapping, Sequence

from deltalog._internal.commit_arguments import AlreadyApplied
from deltalog._internal.snapshot import Snapshot
from deltalog.arguments import StoreOptions, TableOptions
from deltalog.arrow_types import ArrowData
from deltalog.commit import CommitArguments

def create_table(
    uri: str,
    schema_json: str | None,
    mode: str,
    options: TableOptions,
    commit: CommitArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
    stream: ArrowData | None = None,
    cluster_by: Sequence[str] | None = None,
    constraints: Mapping[str, str] | None = None,
    base: Snapshot | None = None,
    file_format: str | None = None,
) -> int | AlreadyApplied | None:
    """Creates or replaces a table, with the rows of an Arrow stream; see `DeltaTable.create`.

    Without `schema_json`, the table has the schema of the stream. If `base` is given, a replacement removes exactly the
    files of this version.
    """
