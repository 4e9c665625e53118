"""Reads tables whose data files Spark cannot reach, because Hadoop has no connector for their store.

The core reads the files, in the Python workers of Spark's tasks, where `deltalog` must also be installed. The settings
for reaching the store are sent in the function that the workers execute, which is neither shown nor logged.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from deltalog._internal import Snapshot, read_fragment
from deltalog.caller import warn_caller
from deltalog.spark.jvm.python_session import python_session
from deltalog.spark.location import Location
from deltalog.spark.read.planner import BatchPlanner, ChangesPlanner, planner_of

_PART = 1 << 27
_VARIANT = re.compile('[tT]ype": ?"variant"')
_FRAGMENT = StructType([StructField("files", BinaryType(), False)])

_lock = threading.Lock()
_warned: set[str] = set()


def portable_rows(session: Any, key: str, schema: str, filters: str, time_zone: str) -> DataFrame:
    """Returns the rows of the version that the planner with this key reads. Files that the filters exclude according to
    the log are not read.

    Args:
        schema: the columns, as JSON; structs may lack some of their fields.
        filters: the filters that `FilterText.java` has written; their times are in `time_zone`.

    Raises:
        UnsupportedFeatureError: a change data feed, a stream, a variant, or Spark's metadata of files (`_metadata`) is
            requested.
    """
    spark = python_session(session)
    planner = planner_of(key)
    snapshot = planner.snapshot
    location = planner.location
    columns = [field["name"] for field in json.loads(schema)["fields"]]
    known = [field["name"] for field in json.loads(snapshot.schema_json)["fields"]]
    # Python workers read only the table's own columns in one version, and no variants, because Spark reads a variant in
    # Arrow data from Python as NULL.
    if (
        isinstance(planner, ChangesPlanner | BatchPlanner)
        or not set(columns) <= set(known)
        or _VARIANT.search(schema)
    ):
        location.ensure_in_reach()
    if location.obstacle is not None:
        _warn(location.obstacle)
    fragments = snapshot.scan_partitions(
        "", _parts(spark, snapshot), columns=columns, condition=(filters, time_zone)
    )
    # Each piece is a partition of its own.
    rows = spark.sparkContext.parallelize([(bytes(piece),) for piece in fragments], max(len(fragments), 1))
    frame = spark.createDataFrame(rows, _FRAGMENT)
    return frame.mapInArrow(_reader(snapshot, schema, location), StructType.fromJson(json.loads(schema)))


def _parts(spark: SparkSession, snapshot: Snapshot) -> int:
    return max(spark.sparkContext.defaultParallelism, -(-snapshot.size_in_bytes() // _PART))


def _reader(snapshot: Snapshot, schema: str, location: Location) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns the function that reads pieces in a worker."""
    options = None if location.storage_options is None else dict(location.storage_options)

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for piece in batch.column(0).to_pylist():
                yield from read_piece(piece, schema, options)

    # Spark shows this name in plans.
    rows.__name__ = f"deltalog [v{snapshot.version}, {snapshot.uri}]"
    return rows


def read_piece(piece: bytes, schema: str, storage_options: Mapping[str, str] | None) -> Iterator[Any]:
    """Yields the rows of a piece with exactly the Spark types of the schema."""
    import pyarrow

    from deltalog.spark.schema import arrow_schema

    expected = arrow_schema(StructType.fromJson(json.loads(schema)))
    for batch in pyarrow.RecordBatchReader.from_stream(read_fragment(piece, storage_options)):
        yield batch.cast(expected)


def _warn(obstacle: str) -> None:
    with _lock:
        if obstacle in _warned:
            return
        _warned.add(obstacle)
    warn_caller(
        f"{obstacle}; until then the rows are read in Python workers, which is slower",
        RuntimeWarning,
    )
