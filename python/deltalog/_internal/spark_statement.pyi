"""A DELETE, UPDATE or MERGE that Spark carries out."""

from typing import final

from deltalog._internal.commit_arguments import AlreadyApplied
from deltalog._internal.snapshot import Snapshot
from deltalog._internal.spark_plan import SparkPlan
from deltalog._internal.spark_write import SparkWrite
from deltalog.spark.dml.text import StatementText
from deltalog.spark.write.compaction import AutoCompaction

@final
class SparkStatement:
    """A DELETE, UPDATE or MERGE whose rows Spark finds and writes."""

    @staticmethod
    def begin(
        snapshot: Snapshot, app_transaction: tuple[str, int] | None = None, data_schema: str | None = None
    ) -> tuple[SparkStatement, SparkWrite] | AlreadyApplied:
        """Begins a statement on exactly `snapshot`, and the write of its files, unless its application has already
        recorded it.

        Columns of `data_schema` that the table lacks are added to it.

        Raises `InvalidArgumentError` for a table that is append-only.
        """
    @property
    def uses_vectors(self) -> bool:
        """Whether rows are deleted by deletion vectors. Otherwise their files are rewritten, see `copies`."""
    def plan(
        self,
        filter_sql: str,
        time_zone: str,
        reads_whole_table: bool,
        keeps_matches: bool,
        removed_sql: str | None,
        source_filters: list[str],
    ) -> SparkPlan:
        """Returns the files that may have rows for which the filter is true, each with a number.

        `removed_sql` is a condition that exactly the removed rows meet. Files whose rows all meet
        it, as partition values or statistics show, are removed unread, and are not among the files.

        The transaction counts as having read these rows, or the whole table. With `keeps_matches`, it also depends on
        the remaining rows of these files: a commit that deletes some of them is a conflict. The transaction has also
        read the rows for which one of `source_filters` is true, from which the source of a MERGE was computed; an empty
        filter is true for all rows.
        """
    @property
    def has_feed(self) -> bool:
        """Whether the table has a change data feed."""
    def check_recordable(self) -> None:
        """Raises `UnsupportedFeatureError` if a column has the name that is reserved for the kind of change."""
    def rewrites(self, numbers: set[int]) -> SparkPlan:
        """Returns files of the plan by their numbers. One job rewrites their rows, changed or unchanged.

        `commit` raises `InvalidArgumentError` if no row of such a file was reported as removed.
        """
    def copies(self, write: SparkWrite, with_removed: bool) -> SparkPlan | None:
        """Returns the files that lose the reported rows, without these rows; None if no row is left.

        With `with_removed`, the removed rows of these and all other files are returned too. For removed rows, the
        number of the file n is -1 - n.
        """
    def has_change_files(self, write: SparkWrite) -> bool:
        """Returns whether tasks have reported change data files."""
    def commit(
        self,
        write: SparkWrite,
        text: StatementText,
        engine_info: str,
        user_metadata: str | None,
        source_rows: int,
        removes_once: bool,
        scan_ms: int,
        rewrite_ms: int,
        auto_compaction: AutoCompaction | None = None,
    ) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
        """Commits what the tasks of the write have reported. Returns the metrics and the versions.

        There are no versions if there was nothing to change. With `removes_once`, a row that two tasks have matched is
        an `InvalidArgumentError`. On any error but `CommitStateUnknownError`, the files are deleted.
        """
