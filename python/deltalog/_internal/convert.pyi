"""CONVERT: turns directories of Parquet files into tables."""

from collections.abc import Mapping
from typing import final

from deltalog._internal.stream import ArrowStream
from deltalog.arguments import StoreOptions
from deltalog.commit import CommitArguments
from deltalog.convert import ConvertArguments

@final
class ConversionPlan:
    """The plan of a conversion."""

    @property
    def num_files(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def schema_json(self) -> str: ...
    @property
    def partition_columns(self) -> list[str]: ...
    def paths(self) -> list[str]:
        """Returns the paths of the files, decoded and relative to the table."""
    def files(self) -> ArrowStream:
        """Returns the files to convert, one row per file."""
    def commit(self) -> int | None:
        """Commits the plan, and returns the version. Returns None if a table was created in the meantime, and the mode
        is `ignore`.
        """

def plan_conversion(
    uri: str,
    arguments: ConvertArguments,
    commit: CommitArguments,
    storage_options: StoreOptions | Mapping[str, str] | None = None,
) -> ConversionPlan | None:
    """Finds the files of a directory, and reads their footers; see `deltalog.plan_conversion`."""
