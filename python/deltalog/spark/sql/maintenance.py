"""Executes OPTIMIZE, REORG, RESTORE and FSCK on Spark, and recomputes the statistics of files.

The driver reads and writes the files with the core's own client for the store. For large tables, executors carry out
OPTIMIZE and REORG (`executors`).
"""

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from deltalog._internal import Snapshot, check_files, optimize, recompute_statistics, repair, restore
from deltalog.commit import commit_arguments
from deltalog.errors import InvalidArgumentError
from deltalog.spark.sql.executors import Executors
from deltalog.spark.sql.vacuum import shown


def _longs(*names: str) -> StructType:
    return StructType([StructField(name, LongType()) for name in names])


_SIZES = StructType(
    [
        StructField("min", LongType()),
        StructField("max", LongType()),
        StructField("avg", DoubleType()),
        StructField("totalFiles", LongType()),
        StructField("totalSize", LongType()),
    ]
)
_FILES = _longs("num", "size")
_Z_ORDER = StructType(
    [
        StructField("strategyName", StringType()),
        StructField("inputCubeFiles", _FILES),
        StructField("inputOtherFiles", _FILES),
        *_longs("inputNumCubes").fields,
        StructField("mergedFiles", _FILES),
        *_longs("numOutputCubes", "mergedNumCubes").fields,
    ]
)
_CLUSTERED_FILES = _longs("numFiles", "size")
_CLUSTERING = StructType(
    [
        StructField("inputZCubeFiles", _CLUSTERED_FILES),
        StructField("inputOtherFiles", _CLUSTERED_FILES),
        *_longs("inputNumZCubes").fields,
        StructField("mergedFiles", _CLUSTERED_FILES),
        *_longs("numOutputZCubes").fields,
    ]
)
# The JVM connector's columns, without columns for other file layouts. Two columns are added at the end.
_METRICS = StructType(
    [
        *_longs("numFilesAdded", "numFilesRemoved").fields,
        StructField("filesAdded", _SIZES),
        StructField("filesRemoved", _SIZES),
        *_longs("partitionsOptimized").fields,
        StructField("zOrderStats", _Z_ORDER),
        StructField("clusteringStats", _CLUSTERING),
        *_longs("numBins", "numBatches", "totalConsideredFiles", "totalFilesSkipped").fields,
        StructField("preserveInsertionOrder", BooleanType()),
        *_longs("startTimeMs", "endTimeMs").fields,
        StructField(
            "deletionVectorStats", _longs("numDeletionVectorsRemoved", "numDeletionVectorRowsRemoved")
        ),
        *_longs("numRowsCarriedOver", "numBinsGivenUp").fields,
    ]
)
OPTIMIZED = StructType([StructField("path", StringType()), StructField("metrics", _METRICS)])
RESTORED = StructType(
    [
        StructField("table_size_after_restore", LongType()),
        StructField("num_of_files_after_restore", LongType()),
        StructField("num_removed_files", LongType()),
        StructField("num_restored_files", LongType()),
        StructField("removed_files_size", LongType()),
        StructField("restored_files_size", LongType()),
    ]
)
CHECKED = StructType(
    [
        StructField("path", StringType()),
        StructField("problem", StringType()),
        StructField("detail", StringType()),
        StructField("partition_values", MapType(StringType(), StringType())),
        StructField("size", LongType()),
        StructField("modification_time", TimestampType()),
        StructField("num_rows", LongType()),
    ]
)
RECOMPUTED = _longs(
    "numFilesConsidered",
    "numFilesChosen",
    "numUpdatedFiles",
    "numFilesByFooter",
    "numFilesByRows",
    "numFilesGivenUp",
)
# The columns are the same as on Databricks, with one more that states whether a file is damaged.
REPAIRED = StructType(
    [
        StructField("dataFilePath", StringType()),
        StructField("dataFileMissing", BooleanType()),
        StructField("dataFileDamaged", BooleanType()),
        StructField("deletionVectorPath", StringType()),
        StructField("deletionVectorFileMissing", BooleanType()),
    ]
)
# The names of the metrics, in the order of the columns above.
_RESTORED = (
    "tableSizeAfterRestore",
    "numOfFilesAfterRestore",
    "numRemovedFiles",
    "numRestoredFiles",
    "removedFilesSize",
    "restoredFilesSize",
)


def optimized(
    snapshot: Snapshot,
    predicate: str | None,
    user_metadata: str | None,
    *,
    purges: bool = False,
    z_order: Sequence[str] | None = None,
    curve: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    executors: Executors | None = None,
) -> list[Any]:
    """Combines small files, rewrites files to remove deleted rows and dropped columns, or orders all rows by columns.

    In a clustered table, new files are clustered, or all files if `full` is true.

    Executors write the files if there are executors and the files are large enough.

    Returns a row of `OPTIMIZED`.
    """
    if z_order is None and curve is not None:
        raise InvalidArgumentError("a curve orders rows by columns: name them in z_order")
    if z_order is not None and not all(z_order):
        raise InvalidArgumentError("a column of z_order has no name")
    if z_order is not None and not z_order:
        raise InvalidArgumentError("z_order has no columns: name one or more, or leave it out")
    order = None if z_order is None else (z_order, curve or "hilbert")
    arguments = commit_arguments(None, user_metadata)
    if executors is not None and not dry_run:
        metrics = executors.optimize(snapshot, predicate, arguments, purges=purges, z_order=order, full=full)
    else:
        size = None if executors is None else executors.target_size()
        clustering = (full, None) if full else None
        metrics, _ = optimize(snapshot, predicate, size, None, purges, dry_run, arguments, order, clustering)
    return [shown(snapshot, [""])[0].rstrip("/"), _values(_METRICS, metrics)]


def restored(
    snapshot: Snapshot,
    version: int | None,
    timestamp_ms: int | None,
    timestamp: str | None,
    user_metadata: str | None,
    *,
    ignore_missing_files: bool = False,
    dry_run: bool = False,
) -> tuple[list[int], int | None]:
    """Restores an earlier version, given by its number or by a time, as the newest one.

    Returns a row with the columns `RESTORED`, and the committed version, or None if nothing was committed.

    Args:
        snapshot: the newest version.
        version: the number of the version to restore; None if a time is given.
        timestamp_ms: the time, in milliseconds since the epoch; None if a version is given.
        timestamp: the time as the user has written it.
        user_metadata: the user's comment on the commit.
        ignore_missing_files: whether files that no longer exist are left out.
        dry_run: whether nothing is committed.
    """
    if (version is None) == (timestamp_ms is None):
        raise InvalidArgumentError("RESTORE takes either a version or a time")
    earlier = snapshot.at(version, timestamp_ms)
    arguments = commit_arguments(None, user_metadata)
    metrics, committed = restore(
        snapshot, earlier, timestamp, ignore_missing_files, False, dry_run, arguments
    )
    return [metrics[name] for name in _RESTORED], committed


def checked(snapshot: Snapshot, level: str) -> list[dict[str, Any]]:
    """Checks the files of a version.

    Returns, for each problem, the values of `CHECKED` by name. Times are in milliseconds.
    """
    import pyarrow

    table = pyarrow.table(check_files(snapshot, level))
    found = table.set_column(
        table.column_names.index("modification_time"),
        "modification_time",
        table["modification_time"].cast(pyarrow.int64()),
    )
    rows: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="strict")
    return rows


def checked_row(found: dict[str, Any]) -> tuple[Any, ...]:
    """Returns a row of `CHECKED`."""
    time = datetime.fromtimestamp(found["modification_time"] / 1000, timezone.utc)
    return tuple({**found, "modification_time": time}[name] for name in CHECKED.names)


def repaired(
    snapshot: Snapshot,
    user_metadata: str | None,
    *,
    remove_damaged: bool = False,
    drop_files_without_vectors: bool = False,
    dry_run: bool = False,
) -> tuple[list[list[Any]], int | None]:
    """Removes missing files from the table.

    Returns rows of `REPAIRED`, and the version that was committed, if one was.
    """
    arguments = commit_arguments(None, user_metadata)
    _, files, committed = repair(snapshot, remove_damaged, drop_files_without_vectors, dry_run, arguments)
    return [_values(REPAIRED, file) for file in files], committed


def recomputed(
    snapshot: Snapshot,
    predicate: str | None,
    user_metadata: str | None,
    *,
    all_files: bool = False,
    dry_run: bool = False,
) -> list[Any]:
    """Computes statistics for files that have no statistics or poor ones. Returns a row of `RECOMPUTED`."""
    arguments = commit_arguments(None, user_metadata)
    metrics, _ = recompute_statistics(snapshot, predicate, all_files, dry_run, arguments)
    return _values(RECOMPUTED, metrics)


def _values(schema: StructType, metrics: dict[str, Any]) -> list[Any]:
    """Returns the values of `metrics` in the order of the columns."""
    found = ((field.dataType, metrics[field.name]) for field in schema.fields)
    return [
        _values(data_type, value) if isinstance(data_type, StructType) and value is not None else value
        for data_type, value in found
    ]


def row_of(schema: StructType, values: Sequence[Any]) -> tuple[Any, ...]:
    """Returns values as a row. Lists with the values of structs become tuples, because a Connect client does not accept
    lists as rows.
    """
    return tuple(
        row_of(field.dataType, value)
        if isinstance(field.dataType, StructType) and value is not None
        else value
        for field, value in zip(schema.fields, values, strict=True)
    )
