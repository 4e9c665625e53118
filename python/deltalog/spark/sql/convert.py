"""CONVERT on Spark. The driver lists the directory and reads the footers with the core's own client of the store."""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from deltalog._internal import plan_conversion
from deltalog.arguments import TableOptions
from deltalog.commit import commit_arguments
from deltalog.convert import ConvertArguments
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location

CONVERTED = StructType(
    [
        StructField("path", StringType()),
        StructField("version", LongType()),
        StructField("num_converted_files", LongType()),
        StructField("size_in_bytes", LongType()),
    ]
)

_DIRECTORY = re.compile(r"(?:parquet|deltalog|delta)\.`((?:[^`]|``)+)`", re.IGNORECASE)
_log = logging.getLogger("deltalog.spark")


def converted(
    jvm: Jvm,
    location: Location,
    partition_by: str | None,
    user_metadata: str | None,
    time_zone: str,
    *,
    statistics: bool = True,
    dry_run: bool = False,
) -> list[Any]:
    """Makes a table of a directory of Parquet files. Returns a row of `CONVERTED`.

    Of a table it is said that there is one, and nothing happens, as in the JVM connector.

    Args:
        jvm: the JVM of the session.
        location: the directory.
        partition_by: the partition columns with their types, as in CREATE TABLE; inferred if None.
        user_metadata: the user's text for the commit.
        time_zone: the session's time zone.
        statistics: whether there are statistics beside the numbers of rows.
        dry_run: whether nothing is committed.
    """
    location.ensure_in_reach()
    columns = None if partition_by is None else partition_schema(jvm, partition_by)
    return directory_converted(
        location.uri,
        location.storage_options,
        columns,
        user_metadata,
        time_zone,
        statistics=statistics,
        dry_run=dry_run,
    )


def directory_converted(
    uri: str,
    storage_options: Mapping[str, str] | None,
    partition_schema: str | None,
    user_metadata: str | None,
    time_zone: str,
    *,
    statistics: bool = True,
    dry_run: bool = False,
) -> list[Any]:
    """Does what `converted` does, for a directory by its URL and partition columns as JSON."""
    arguments = ConvertArguments("ignore", TableOptions(), partition_schema, time_zone, statistics)
    plan = plan_conversion(uri, arguments, commit_arguments(None, user_metadata), storage_options)
    if plan is None:
        _log.warning("%s is a Delta table already: there is nothing to convert", uri)
        return [uri, None, 0, 0]
    version = None if dry_run else plan.commit()
    return [uri, version, plan.num_files, plan.size_in_bytes]


def partition_schema(jvm: Jvm, text: str) -> str:
    """Returns the schema of columns in the form of SQL, as JSON."""
    schema = json.loads(jvm.java("org.apache.spark.sql.types.StructType").fromDDL(text).json())
    return json.dumps(schema)


def sql_of(partition_schema: Any) -> str | None:
    """Returns the partition columns that a user of `DeltaTable.convertToDelta` gives, as SQL."""
    if partition_schema is None or isinstance(partition_schema, str):
        return partition_schema
    if not isinstance(partition_schema, StructType):
        raise InvalidArgumentError(
            f"the partition columns are SQL such as 'day DATE', or a StructType, not {partition_schema!r}"
        )
    columns = (
        f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in partition_schema
    )
    return ", ".join(columns)


def path_of(identifier: str) -> str:
    """Returns the path in parquet.`/path`."""
    found = _DIRECTORY.fullmatch(identifier.strip()) if isinstance(identifier, str) else None
    if found is None:
        raise InvalidArgumentError(f"what can be converted is named parquet.`/path`, not {identifier!r}")
    return found[1].replace("``", "`")
