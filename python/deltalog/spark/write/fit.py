"""Describes how the rows of a write are converted to the table's schema, and to the columns of its files.

Columns are matched by name, types are cast according to Spark's store assignment (`ColumnFit.java`), and partition
values are converted to strings as in the log (`FileColumns.java`). A column that cannot be stored raises an error
before any file is written. A value that does not fit its type (an overflow, or NULL in a NOT NULL column) fails the
job.
"""

from collections.abc import Set
from typing import Any

from deltalog._internal import SparkWrite
from deltalog.spark import schema
from deltalog.spark.errors import InvalidArgumentError, SchemaMismatchError
from deltalog.spark.write.request import WriteRequest
from deltalog.spark.write.settings import Settings


def to_table(request: WriteRequest, table_schema_json: str, computed: Set[str]) -> dict[str, Any]:
    """Describes rows with exactly the table's columns. Missing columns are null; unknown columns are an error.

    The columns `computed`, in lower case, are left out of the rows, because their values are computed later.
    """
    table = request.uri
    given = [name for name in request.names if name.lower() not in computed]
    if not given:
        raise SchemaMismatchError(f"there are no columns to write into the table {table}")
    check_policy(request.settings, table)
    columns = schema.field_names(table_schema_json)
    key = str if request.settings.is_case_sensitive else str.lower
    known = {key(name) for name in columns}
    extra = [name for name in given if key(name) not in known]
    if extra:
        raise SchemaMismatchError(
            f"the table {table} has no column {', '.join(extra)}; it has {', '.join(columns)}. A write does not add "
            "columns"
        )
    dropped = [name for name in request.names if name.lower() in computed]
    return {"table": table, "schema": table_schema_json, "dropped": dropped}


def check_policy(settings: Settings, table: str) -> None:
    """Raises an error if Spark's rules for storing values would change values that do not fit."""
    if settings.store_assignment_policy == "LEGACY":
        raise InvalidArgumentError(
            f"the rows cannot be written into the table {table} while spark.sql.storeAssignmentPolicy is LEGACY, which "
            "changes values that do not fit: set it to ANSI or STRICT"
        )


def check_partitions(pending: SparkWrite, names: list[str]) -> None:
    """Raises an error if rows with these columns lack a partition column, or have only partition columns.

    Checks nothing if the files themselves also contain the partition columns.
    """
    if pending.directory_columns is not None:
        return
    known, partitions = _positions(names), pending.partition_columns
    missing = [name for name in partitions if name.lower() not in known]
    if missing:
        raise InvalidArgumentError(
            f"the data has no column {', '.join(missing)} to partition by; it has {', '.join(names)}"
        )
    if len({name.lower() for name in partitions}) == len(names):
        raise InvalidArgumentError(
            "all columns of the table are partition columns, but the data files need at least one column"
        )


def file_columns(pending: SparkWrite, names: list[str], more: int = 0) -> dict[str, Any] | None:
    """Describes the columns of the table's files, for rows with the table's columns `names`.

    The last `more` columns of the rows do not belong to the table, and are not changed. Returns None if no column has
    to be changed. Raises an error for rows that files cannot hold.
    """
    lacks_void = pending.lacks_void()
    positions = partition_positions(pending, names)
    physical = pending.physical_schema_json
    directories = pending.directory_columns
    if not (positions or physical or directories or lacks_void):
        return None
    return {
        "partitions": positions,
        "physical": physical,
        "directories": directories,
        "lacksVoid": lacks_void,
        "more": more,
    }


def text_columns(pending: SparkWrite) -> list[str]:
    """Returns the names of the file columns that contain the text of partition values."""
    if pending.directory_columns is not None:
        return list(pending.directory_columns)
    if pending.physical_schema_json is not None:
        return list(pending.physical_partition_columns)
    return list(pending.partition_columns)


def partition_positions(pending: SparkWrite, names: list[str]) -> list[int]:
    """Returns the positions of the partition columns among the columns `names`."""
    known = _positions(names)
    return [known[name.lower()] for name in pending.partition_columns]


def _positions(names: list[str]) -> dict[str, int]:
    return {name.lower(): position for position, name in enumerate(names)}
