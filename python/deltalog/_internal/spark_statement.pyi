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
        """Begins a statement on exactly the version of `snapshot`, and the write of its files. Returns an
        `AlreadyApplied` if the table has already recorded the statement for its application.

        Columns of `data_schema` that the table lacks are added to it.

        Raises `InvalidArgumentError` if the table is append-only.
        """
    @property
    def uses_vectors(self) -> bool:
        """Whether rows are deleted by deletion vectors, so that their files remain. Otherwise, these files are
        rewritten; see `copies`.
        """
    def plan(
        self,
        filter_sql: str,
        time_zone: str,
        reads_whole_table: bool,
        keeps_matches: bool,
        removed_sql: str | None,
        source_filters: list[str],
    ) -> SparkPlan:
        """Returns the files that may contain rows for which the filter is true, each with a number.

        `removed_sql` is a condition that is true for exactly the rows that the statement removes. If partition values
        or statistics show that it is true for all rows of a file, the file is removed without being read, and is not
        returned.

        The other arguments determine which later commits conflict with the statement. The statement has read the rows
        for which the filter is true or, with `reads_whole_table`, all rows. With `keeps_matches`, it also depends on
        the other rows of the returned files: a commit that deletes some of them is a conflict. It also depends on the
        rows for which one of `source_filters` is true, because the source of a MERGE was computed from them. An empty
        filter is true for all rows.
        """
    @property
    def has_feed(self) -> bool:
        """Whether the table has a change data feed."""
    def check_recordable(self) -> None:
        """Raises `UnsupportedFeatureError` if a column has the name that is reserved for the kind of change."""
    def rewrites(self, numbers: set[int]) -> SparkPlan:
        """Returns the planned files with these numbers. One job rewrites all of their rows, both changed and unchanged.

        `commit` raises `InvalidArgumentError` if no row of such a file was reported as removed.
        """
    def copies(self, write: SparkWrite, with_removed: bool) -> SparkPlan | None:
        """Returns the files from which tasks have reported removed rows, for a scan of their remaining rows. Returns
        None if no row remains.

        With `with_removed`, the scan also returns the removed rows of these and all other files. For a removed row of
        the file n, the number of the file is -1 - n.
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
        """Commits the changes that the tasks of the write have reported. Returns the metrics, and the versions that
        were committed.

        If nothing was changed, no version is committed. With `removes_once`, raises `InvalidArgumentError` if two tasks
        have matched the same row. On any error except `CommitStateUnknownError`, the files are deleted.
        """
