"""`DeltaTable` for Spark, with the names of `delta.tables.DeltaTable`. Import it from `deltalog.tables`."""

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
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.read import commands
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
    """A Delta table, created by `forPath` or `forName`. Each call uses the newest version."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path

    @classmethod
    @raises_pyspark_errors
    def forPath(cls, sparkSession: SparkSession, path: str) -> "DeltaTable":  # noqa: N802, N803 (the names users know)
        """Returns the table at `path`.

        Raises `NotATableError` if there is none.
        """
        table = cls(sparkSession, path)
        table._ask("version")
        return table

    @classmethod
    @raises_pyspark_errors
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> "DeltaTable":  # noqa: N802, N803
        """Returns the table with this name in the session catalog, or deltalog.`/path`."""
        return cls.forPath(sparkSession, path_of_name(sparkSession, tableOrViewName))

    @classmethod
    @raises_pyspark_errors
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: N802, N803
        """Returns whether there is a Delta table at the path.

        Raises an error if the location cannot be read.
        """
        try:
            cls(sparkSession, identifier)._ask("version")
        except NotATableError:
            return False
        return True

    @raises_pyspark_errors
    def toDF(self) -> DataFrame:  # noqa: N802
        """Returns the newest version as a DataFrame, which stays on that version."""
        reader = self._spark.read.format("deltalog")
        if is_connect(self._spark):  # Connect plans a DataFrame again for each action.
            reader = reader.option("versionAsOf", self._ask("version"))
        return reader.load(self._path)

    @raises_pyspark_errors
    def history(self, limit: int | None = None) -> DataFrame:
        """Returns the commits, newest first."""
        if limit is not None and limit < 1:
            raise InvalidArgumentError(f"the limit of history must be at least 1, not {limit}")
        commits = self._ask("history", limit=limit)
        return self._spark.createDataFrame([_row(_HISTORY, commit) for commit in commits], _HISTORY)

    @raises_pyspark_errors
    def detail(self) -> DataFrame:
        """Returns one row that describes the newest version."""
        return self._spark.createDataFrame([_row(_DETAIL, self._ask("detail"))], _DETAIL)

    @raises_pyspark_errors
    def count(self, condition: str | None = None) -> int:
        """Returns the number of rows of the newest version, or of those for which the SQL `condition` is true.

        The number comes from the log if possible, as in Python's `DeltaTable.count`.
        """
        return int(self._ask("count", condition=condition, time_zone=self._time_zone()))

    @raises_pyspark_errors
    def count_by_partition(self, condition: str | None = None) -> DataFrame:
        """Returns the number of rows of each partition of the newest version.

        The columns are the partition columns and `count`, as in Python's `DeltaTable.count_by_partition`.
        """
        counts = self._ask("countByPartition", condition=condition, time_zone=self._time_zone())
        table = StructType.fromJson(json.loads(counts.schema.metadata[b"deltalog.schema"]))
        *partition_columns, count = counts.column_names
        schema = StructType([*(table[name] for name in partition_columns), StructField(count, LongType())])
        return self._spark.createDataFrame(counts.replace_schema_metadata(None), schema)

    @raises_pyspark_errors
    def min_max(self, column: str, condition: str | None = None) -> tuple[Any, Any] | None:
        """Returns the minimum and maximum of a column of the newest version.

        Returns None if the log does not contain them, as Python's `DeltaTable.min_max` does.
        """
        answer = self._ask("minMax", column=column, condition=condition, time_zone=self._time_zone())
        return None if answer is None else (answer[0], answer[1])

    def _ask(self, command: str, **arguments: Any) -> Any:
        """Returns the result of a command on the newest version.

        A Connect client may have no access to the table's files, so there the server executes the command.
        """
        if not is_connect(self._spark):
            return commands.answer(Snapshot.open(uri_in(self._spark, self._path)), command, arguments)
        options = {commands.COMMAND: command, commands.ARGUMENTS: json.dumps(arguments)}
        [row] = self._spark.read.format("deltalog").options(**options).load(self._path).collect()
        return commands.value_of(row[commands.ANSWER])

    def _time_zone(self) -> str:
        return str(self._spark.conf.get("spark.sql.session.timeZone"))


def _row(schema: StructType, values: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(_field_value(field, values.get(field.name)) for field in schema.fields)


def _field_value(field: StructField, value: Any) -> Any:
    """Converts a value to the type of its column.

    A commitInfo is free-form. A value of another type is converted to text or dropped.
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
    if isinstance(field.dataType, ArrayType):
        return value if isinstance(value, list) else None
    if isinstance(field.dataType, LongType | IntegerType):
        return value if isinstance(value, int) else None
    if isinstance(field.dataType, BooleanType):
        return value if isinstance(value, bool) else None
    return _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _timestamp(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
