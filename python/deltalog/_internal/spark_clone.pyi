"""A CLONE whose files Spark's tasks copy."""

import builtins
from typing import final

from deltalog._internal.snapshot import Snapshot
from deltalog._internal.spark_plan import SparkPlan
from deltalog.clone import CloneArguments
from deltalog.commit import CommitArguments

@final
class SparkClone:
    """A CLONE whose data files are copied by Spark's tasks, or by this process if that is faster."""

    @staticmethod
    def begin(snapshot: Snapshot, uri: str, arguments: CloneArguments, commit: CommitArguments) -> SparkClone:
        """Plans which files are copied; see `clone_table`."""
    @property
    def files(self) -> int:
        """The number of data files that are copied."""
    @property
    def bytes(self) -> int:
        """The size of these files in bytes."""
    def tasks(self, parallelism: int) -> SparkPlan:
        """Returns the files that each task copies. There are at least this many tasks, if the files can be divided."""
    def commit(self, told: builtins.bytes) -> tuple[dict[str, int], int | None, list[str]]:
        """Copies the files of deletion vectors, and commits the copies that the tasks have made. Returns the same as
        `clone_table`.

        Args:
            told: 20 bytes for each copy, big endian: i32 number of the file, the 64 bits that the name of the copy has
                as 16 hexadecimal digits, i64 size.

        Raises `CorruptDataError` if the tasks have not done what was planned, and the errors of `clone_table`. On an
        error, the copies are deleted.
        """
    def abandon(self) -> None:
        """Deletes the files that tasks copied before the job failed, even tasks that reported nothing."""
    def execute(self) -> tuple[dict[str, int], int | None, list[str]]:
        """Copies and commits all files in this process; returns the same."""
