"""Finds the location of a table in a classic session, by its path or its name."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location, location_of, uri_of
from deltalog.spark.options import Options

# The provider names of Delta tables. The second name is the one that the JVM connector writes in catalogs.
PROVIDERS = ("deltalog", "delta")


def is_connect(spark: Any) -> bool:
    """Returns whether the session is a Connect session, which has no JVM."""
    return not hasattr(spark, "_jsparkSession")


def location_in(spark: SparkSession, path: str, given: Mapping[str, str]) -> tuple[Location, list[str]]:
    """Returns the location of a path in a classic session, and the URLs of the allowed roots of its data files.

    The given options determine how the store is accessed, and contain the allowed roots.
    """
    options = Options({**given, "path": path})
    jvm, session = Jvm.of(spark), spark._jsparkSession
    location = location_of(jvm, session, options)
    return location, [uri_of(jvm, session, root) for root in options.allowed_roots]


def place_of_name(spark: SparkSession, name: str) -> tuple[str, dict[str, str]]:
    """Returns the path of the table with this name, and the options that are needed to read it if it is a shallow
    clone.
    """
    prefix, separator, rest = name.partition(".")
    if (
        separator
        and prefix.lower() in PROVIDERS
        and rest.startswith("`")
        and rest.endswith("`")
        and "/" in rest
    ):
        return rest[1:-1].replace("``", "`"), {}
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    about = {row["col_name"]: row["data_type"] for row in rows}
    provider = about.get("Provider", "")
    if about.get("Type") == "VIEW" or not provider:  # Spark shows neither for a temporary view.
        raise InvalidArgumentError(
            f"{name} is a view, not a Delta table: pass the name of the table that it reads, or read the view with "
            f"spark.table({name!r})"
        )
    if provider.lower() not in PROVIDERS:
        raise InvalidArgumentError(f"{name} is not a Delta table: its provider is {provider}")
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    # `DeltalogTable.java` shows the option.
    roots = properties.get("option.allowedRoots")
    return str(about["Location"]), {} if roots is None else {"allowedRoots": roots}
