"""A change data feed for Spark's scan."""

from typing import final

from deltalog._internal.snapshot import Snapshot
from deltalog._internal.spark_plan import SparkPlan

@final
class SparkChanges:
    """The files of a change data feed for Spark's scan.

    A file's partition values are the values of the table's partition columns, followed by `_commit_version` and
    `_commit_timestamp`.
    """

    @property
    def snapshot(self) -> Snapshot:
        """The last version of the feed. All rows have the schema of this version."""
    @property
    def versions(self) -> tuple[int, int] | None:
        """The first and the last version of the feed; None if the range is empty."""
    def size_in_bytes(self) -> int: ...
    def plan_spark(self, filter_sql: str, time_zone: str) -> SparkPlan:
        """Returns the files that may contain rows for which `filter_sql` is true, as `Snapshot.plan_spark` does."""
