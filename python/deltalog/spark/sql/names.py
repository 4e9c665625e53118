"""Locations of tables that a user gives by path or by name, in classic and Connect sessions."""

from typing import Any
from urllib.parse import quote

from pyspark.sql import SparkSession

from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import uri_of

# A catalog of the JVM connector's has the second one.
_PROVIDERS = ("deltalog", "delta")


def is_connect(spark: Any) -> bool:
    """Whether the session has no JVM of its own."""
    return not hasattr(spark, "_jsparkSession")


def uri_in(spark: SparkSession, path: str) -> str:
    """Returns the URL of a path as users of a classic session write it."""
    return uri_of(Jvm(spark.sparkContext._gateway), spark._jsparkSession, path)


def connect_uri(path: str) -> str:
    """Returns the URL of a path in a process of Spark's that has no Hadoop; without a scheme it is a local path.

    A relative path is refused: it would mean another place in each process of the server.
    """
    local = path.removeprefix("file:") if path.startswith("file:") else path
    if "://" in local:
        return path
    if not local.startswith("/"):
        raise InvalidArgumentError(
            f"the path {path!r} is relative: here it must be absolute, because the processes of Spark (and the client "
            "of a Connect server) do not have the same working directory"
        )
    return "file://" + quote("/" + local.lstrip("/"))


def path_of_name(spark: SparkSession, name: str) -> str:
    """Returns the path behind a table's name."""
    prefix, separator, rest = name.partition(".")
    if (
        separator
        and prefix.lower() in _PROVIDERS
        and rest.startswith("`")
        and rest.endswith("`")
        and "/" in rest
    ):
        return rest[1:-1].replace("``", "`")
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    about = {row["col_name"]: row["data_type"] for row in rows}
    if about.get("Provider", "").lower() not in _PROVIDERS:
        raise InvalidArgumentError(
            f"{name} is not a Delta table: its provider is {about.get('Provider', 'unknown')}"
        )
    return str(about["Location"])
