"""`DeltaTable`, with the names of `delta.tables.DeltaTable`, so that switching is an import."""

import json
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from deltalog._internal import Snapshot
from deltalog.spark.errors import InvalidArgumentError, NotATableError
from deltalog.spark.sql.names import is_connect, path_of_name, uri_in

_STRINGS = MapType(StringType(), StringType())
_NOTEBOOK = StructType([StructField("notebookId", StringType())])
_JOB = StructType(
    [
        StructField(name, StringType())
        for name in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
    ]
)
_HISTORY = StructType(
    [
        StructField("version", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("userId", StringType()),
        StructField("userName", StringType()),
        StructField("operation", StringType()),
        StructField("operationParameters", _STRINGS),
        StructField("job", _JOB),
        StructField("notebook", _NOTEBOOK),
        StructField("clusterId", StringType()),
        StructField("readVersion", LongType()),
        StructField("isolationLevel", StringType()),
        StructField("isBlindAppend", BooleanType()),
        StructField("operationMetrics", _STRINGS),
        StructField("userMetadata", StringType()),
        StructField("engineInfo", StringType()),
    ]
)
_DETAIL = StructType(
    [
        StructField("format", StringType()),
        StructField("id", StringType()),
        StructField("name", StringType()),
        StructField("description", StringType()),
        StructField("location", StringType()),
        StructField("createdAt", TimestampType()),
        StructField("lastModified", TimestampType()),
        StructField("partitionColumns", ArrayType(StringType())),
        StructField("clusteringColumns", ArrayType(StringType())),
        StructField("numFiles", LongType()),
        StructField("sizeInBytes", LongType()),
        StructField("properties", _STRINGS),
        StructField("minReaderVersion", IntegerType()),
        StructField("minWriterVersion", IntegerType()),
        StructField("tableFeatures", ArrayType(StringType())),
    ]
)


class DeltaTable:
    """A Delta table, at its newest version each time it is asked. Made by `forPath` and `forName`."""

    def __init__(self, spark: SparkSession, path: str, uri: str) -> None:
        self._spark = spark
        self._path = path
        self._uri = uri

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str) -> "DeltaTable":  # noqa: N802, N803 (the names users know)
        """The table at `path`; an error if there is none."""
        uri = uri_in(sparkSession, path)
        Snapshot.open(uri)
        return cls(sparkSession, path, uri)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> "DeltaTable":  # noqa: N802, N803
        """The table with this name in the session catalog, or deltalog.`/path`."""
        return cls.forPath(sparkSession, path_of_name(sparkSession, tableOrViewName))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: N802, N803
        """Whether there is a Delta table at the path.

        A location that could not be read is an error, not a no.
        """
        try:
            Snapshot.open(uri_in(sparkSession, identifier))
        except NotATableError:
            return False
        return True

    def toDF(self) -> DataFrame:  # noqa: N802
        """The newest version, on which the DataFrame stays."""
        reader = self._spark.read.format("deltalog")
        if is_connect(self._spark):  # there a DataFrame is planned anew for each action
            reader = reader.option("versionAsOf", Snapshot.open(self._uri).version)
        return reader.load(self._path)

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first."""
        if limit is not None and limit < 1:
            raise InvalidArgumentError(f"the limit of history must be at least 1, not {limit}")
        commits = [json.loads(commit) for commit in Snapshot.open(self._uri).history_json(limit)]
        return self._spark.createDataFrame([_commit_row(commit) for commit in commits], _HISTORY)

    def detail(self) -> DataFrame:
        """One row that describes the newest version."""
        return self._spark.createDataFrame([_detail_row(Snapshot.open(self._uri))], _DETAIL)

    def count(self, condition: str | None = None) -> int:
        """How many rows the newest version has; with a `condition` (SQL), how many it is true for.

        The log answers, as in Python's `DeltaTable.count`.
        """
        return Snapshot.open(self._uri).count(condition, self._time_zone())

    def count_by_partition(self, condition: str | None = None) -> DataFrame:
        """How many rows each partition of the newest version has:

        the partition columns and `count`. As Python's `DeltaTable.count_by_partition`.
        """
        import pyarrow

        snapshot = Snapshot.open(self._uri)
        counts = pyarrow.table(snapshot.count_by_partition(condition, self._time_zone()))
        table = StructType.fromJson(json.loads(snapshot.schema_json))
        schema = StructType(
            [*(table[name] for name in snapshot.partition_columns), StructField("count", LongType())]
        )
        return self._spark.createDataFrame(counts, schema)

    def min_max(self, column: str, condition: str | None = None) -> tuple[Any, Any] | None:
        """The least and the greatest value of a column of the newest version, or None if the log does not
        tell. As Python's `DeltaTable.min_max`.
        """
        return Snapshot.open(self._uri).min_max(column, condition, self._time_zone())

    def _time_zone(self) -> str:
        return str(self._spark.conf.get("spark.sql.session.timeZone"))


def _commit_row(commit: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(_field_value(field, commit.get(field.name)) for field in _HISTORY.fields)


def _field_value(field: StructField, value: Any) -> Any:
    """A field of a commitInfo, which is free-form:

    what has another type than the column's is shown as text or not at all.
    """
    if value is None:
        return None
    if isinstance(field.dataType, TimestampType):
        return _timestamp(value)
    if isinstance(field.dataType, MapType):
        return {name: _text(entry) for name, entry in value.items()} if isinstance(value, dict) else None
    if isinstance(field.dataType, StructType):
        return (
            tuple(_optional_text(value.get(name)) for name in field.dataType.names)
            if isinstance(value, dict)
            else None
        )
    if isinstance(field.dataType, LongType):
        return value if isinstance(value, int) else None
    if isinstance(field.dataType, BooleanType):
        return value if isinstance(value, bool) else None
    return _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _timestamp(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _detail_row(snapshot: Snapshot) -> tuple[Any, ...]:
    return (
        "delta",
        snapshot.table_id,
        snapshot.name,
        snapshot.description,
        snapshot.uri,
        _timestamp(snapshot.created_time_ms),
        _timestamp(snapshot.timestamp_ms),
        snapshot.partition_columns,
        [".".join(path) for path in snapshot.clustering_columns()],
        snapshot.num_files(),
        snapshot.size_in_bytes(),
        dict(snapshot.configuration),
        snapshot.min_reader_version,
        snapshot.min_writer_version,
        sorted({*(snapshot.reader_features or ()), *(snapshot.writer_features or ())}),
    )
