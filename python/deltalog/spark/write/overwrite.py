"""Which rows an overwrite replaces: the one decision for all APIs for writing."""

from deltalog._internal import SparkWrite
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.options import Options

# The option takes precedence over the session's setting, as in Spark.
OPTION = "partitionOverwriteMode"
SETTING = "spark.sql.sources.partitionOverwriteMode"


def overwrite_mode(options: Options, session_mode: str | None) -> str | None:
    """Returns `static` or `dynamic`: the option, else the session's setting. None if neither is known."""
    option = options.values.get(OPTION.lower())
    if option is not None and option.strip().lower() not in ("static", "dynamic"):
        raise InvalidArgumentError(f"{OPTION} must be static or dynamic, not {option!r}")
    mode = session_mode if option is None else option
    return None if mode is None else mode.strip().lower()


def check_overwrite(pending: SparkWrite, uri: str, mode: str | None) -> None:
    """Raises an error if the mode is not known and matters.

    Both modes are the same for a new table and for a table without partition columns.
    """
    if mode is None and pending.table_schema_json is not None and pending.partition_columns:
        raise InvalidArgumentError(
            f"it is unknown whether the overwrite replaces the whole table {uri} or some of its partitions, because "
            f"Spark does not pass the setting {SETTING} to Python data sources: set the option {OPTION} to static to "
            "replace the whole table, or to dynamic to replace the partitions that the data has rows for"
        )
