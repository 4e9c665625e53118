"""The columns of `DESCRIBE HISTORY` and `DESCRIBE DETAIL`, which are the JVM connector's, and conversions to rows."""

import json
from datetime import datetime, timezone
from typing import Any

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

_STRINGS = MapType(StringType(), StringType())
_NOTEBOOK = StructType([StructField("notebookId", StringType())])
_JOB = StructType(
    [
        StructField(name, StringType())
        for name in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
    ]
)
HISTORY = StructType(
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
DETAIL = StructType(
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


def row(schema: StructType, values: dict[str, Any]) -> tuple[Any, ...]:
    """Returns a row with the columns of the schema. Columns that have no value in `values` are NULL."""
    return tuple(_field_value(field, values.get(field.name)) for field in schema.fields)


def _field_value(field: StructField, value: Any) -> Any:
    """Converts a value to the type of its column.

    A commitInfo may contain values of any type. A value of the wrong type is converted to a string or dropped.
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


def json_rows(schema: StructType, rows: list[tuple[Any, ...]]) -> str:
    """Returns rows as an array of JSON objects, from which Spark creates rows with the same schema."""
    return json.dumps([_json_value(schema, row) for row in rows])


def _json_value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {
            field.name: _json_value(field.dataType, part)
            for field, part in zip(kind.fields, value, strict=True)
        }
    if isinstance(kind, TimestampType):
        return value.isoformat(timespec="milliseconds")
    return value
