"""Where a table is that a user names by path or by name, in classic and Connect sessions."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyspark.sql import SparkSession

from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import uri_of


def is_connect(spark: Any) -> bool:
    """Whether the session has no JVM of its own."""
    return not hasattr(spark, "_jsparkSession")


def uri_in(spark: SparkSession, path: str) -> str:
    """The URL of a path as users of Spark write it.

    A Connect session has no Hadoop: there a path without scheme is a local one.
    """
    if not is_connect(spark):
        return uri_of(Jvm(spark.sparkContext._gateway), spark._jsparkSession, path)
    return connect_uri(path)


def connect_uri(path: str) -> str:
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return path if "://" in path else f"file://{quote(str(Path(path).absolute()))}"


def path_of_name(spark: SparkSession, name: str) -> str:
    """The path behind a table's name."""
    prefix, separator, rest = name.partition(".")
    if (
        separator
        and prefix.lower() == "deltalog"
        and rest.startswith("`")
        and rest.endswith("`")
        and "/" in rest
    ):
        return rest[1:-1].replace("``", "`")
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    about = {row["col_name"]: row["data_type"] for row in rows}
    if about.get("Provider", "").lower() != "deltalog":
        raise InvalidArgumentError(f"{name} is not a table of the format deltalog")
    return str(about["Location"])
