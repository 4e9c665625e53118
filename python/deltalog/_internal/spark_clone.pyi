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
        """Divides the files into tasks that copy them. There are at least as many tasks as requested, unless there are
        fewer files.
        """
    def commit(self, told: builtins.bytes) -> tuple[dict[str, int], int | None, list[str]]:
        """Copies the files of deletion vectors, commits the copies that the tasks have made, and returns the same as
        `clone_table`.

        Args:
            told: 20 bytes for each copy, big endian: the number of the file (i32), the 64 bits that the name of the
                copy contains as 16 hexadecimal digits, and the size (i64).

        Raises `CorruptDataError` if the copies differ from the plan, and the same errors as `clone_table`. On an error,
        the copies are deleted.
        """
    def abandon(self) -> None:
        """Deletes the files that tasks copied before the job failed, including files of tasks that reported nothing."""
    def execute(self) -> tuple[dict[str, int], int | None, list[str]]:
        """Copies all files in this process, commits them, and returns the same as `clone_table`."""
