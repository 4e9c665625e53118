"""The files of a batch of a stream for Spark's scan."""

from typing import final

from deltalog._internal.spark_plan import SparkPlan
from deltalog._internal.table_stream import TableStream

@final
class SparkBatch:
    """The files of a batch of a stream, for Spark's scan. The files are found when `plan_spark` is called."""

    def __new__(cls, stream: TableStream, start: str | None, end: str) -> SparkBatch:
        """Checks, without I/O, that the offsets belong to the stream."""
    def size_in_bytes(self) -> int: ...
    def plan_spark(self, filter_sql: str, time_zone: str) -> SparkPlan:
        """Returns the files that may contain rows for which `filter_sql` is true, as `Snapshot.plan_spark` does."""
