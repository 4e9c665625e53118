"""An OPTIMIZE whose files Spark's tasks write."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, final

from deltalog._internal.snapshot import Snapshot
from deltalog._internal.spark_plan import SparkPlan
from deltalog._internal.spark_write import SparkWrite
from deltalog.commit import CommitArguments

@final
class SparkOptimize:
    """An OPTIMIZE or REORG whose files are written batch by batch by Spark, or by this process if that is faster."""

    @staticmethod
    def begin(
        snapshot: Snapshot,
        predicate: str | None,
        purges: bool,
        commit: CommitArguments,
        target_size: int | None = None,
        z_order: tuple[Sequence[str], str] | None = None,
        full: bool = False,
    ) -> SparkOptimize:
        """Plans which files are rewritten; see `optimize`."""
    @property
    def ordering(self) -> tuple[list[list[str]], bool, int] | None:
        """The order of the rows in bins whose rows are ordered: the paths of the columns, whether the curve is a
        Hilbert curve, and the number of bits of a rank. None if the OPTIMIZE does not order rows.
        """
    @property
    def tasks(self) -> int:
        """The number of new files of all batches. Each file is written by one task."""
    @property
    def batches(self) -> int:
        """The number of batches. Each batch is one commit."""
    @property
    def bins(self) -> int:
        """The number of bins of all batches. The files of a bin become one file, or several if rows are ordered."""
    @property
    def bytes(self) -> int:
        """The size of all files that are rewritten, in bytes."""
    def files(self, batch: int) -> SparkPlan:
        """Returns the old files of a batch, numbered bin by bin in the order of `outputs`, and within a bin in the
        order in which their rows come in the new files.
        """
    def outputs(self, batch: int) -> list[tuple[int, int, bool, int | None, str, list[str | None]]]:
        """Returns, for each bin, the number of its old files, the number of its new files, whether its rows are
        ordered, the number of rows including deleted ones (None if the log does not have it), and the directory and the
        partition values of the new files.

        The directory is decoded, relative to the table's root, and ends with a slash unless it is the root.
        """
    def write(self) -> SparkWrite:
        """Begins the write of the files of a batch."""
    def commit(
        self,
        batch: int,
        write: SparkWrite,
        ordered: tuple[Sequence[int], Callable[[builtins.bytes], builtins.bytes | None]] | None = None,
    ) -> int | None:
        """Commits a batch whose files the tasks of the write `write` have written, and ends this write.

        If rows were ordered, `ordered` is a pair: the number of rows that were read from each old file, and a function
        that finds rows in the new files. The function takes 12 bytes for each row, the big-endian number of the file
        and the position there, and returns 12 bytes for each row, the number of the task and the position in its file.
        If it returns None, the bins of these rows are given up.

        Returns the version; None if all bins were given up, because other writers had removed their rows.

        Raises `CorruptDataError` if the new files differ from the plan, and `CommitConflictError`. On an error, the new
        files are deleted.
        """
    def finish(self) -> tuple[dict[str, Any], int | None]:
        """Returns the metrics, and the version of the last commit, if any."""
    def execute(self) -> tuple[dict[str, Any], int | None]:
        """Writes and commits all files in this process. Returns the metrics, and the version of the last commit, if
        any.
        """
