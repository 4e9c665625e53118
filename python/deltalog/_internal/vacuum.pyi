"""The files that a table no longer needs."""

from typing import final

from deltalog._internal.snapshot import Snapshot
from deltalog._internal.stream import ArrowStream
from deltalog.commit import CommitArguments
from deltalog.table.vacuum import VacuumArguments

@final
class VacuumPlan:
    """The files that a table no longer needs."""

    @property
    def num_files(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def cutoff_ms(self) -> int: ...
    def paths(self) -> list[str]: ...
    def files(self) -> ArrowStream:
        """Returns the files, one row per file; see `deltalog.VacuumPlan.files`."""
    def delete(self) -> tuple[int, int, int, int]:
        """Deletes the files.

        Returns the number of deleted files, their size, the number of removed directories, and the version of the last
        commit.
        """

def plan_vacuum(snapshot: Snapshot, arguments: VacuumArguments, commit: CommitArguments) -> VacuumPlan:
    """Finds the files that the newest version no longer needs; see `DeltaTable.vacuum`."""
