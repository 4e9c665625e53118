"""The check of which rows an overwrite replaces, shared by all APIs for writing."""

from deltalog._internal import SparkWrite
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.options import Options

# The option takes precedence over the session's setting, as in Spark.
OPTION = "partitionOverwriteMode"
SETTING = "spark.sql.sources.partitionOverwriteMode"


def check_overwrite(pending: SparkWrite, uri: str, options: Options, session_mode: str | None) -> None:
    """Raises an error unless the overwrite replaces the whole table. Other overwrites are not supported yet.

    Both modes are the same for a new table and for a table without partition columns. `session_mode` is None if
    the session's setting is unknown; then the option must be set.
    """
    option = options.values.get(OPTION.lower())
    if option is not None and option.strip().lower() not in ("static", "dynamic"):
        raise InvalidArgumentError(f"{OPTION} must be static or dynamic, not {option!r}")
    if pending.table_schema_json is None or not pending.partition_columns:
        return
    mode = session_mode if option is None else option
    if mode is None:
        raise InvalidArgumentError(
            f"it is unknown whether the overwrite replaces the whole table {uri} or some of its partitions, because "
            f"Spark does not pass the setting {SETTING} to Python data sources: set the option {OPTION} to static to "
            "replace the whole table"
        )
    if mode.strip().lower() == "dynamic":
        raise UnsupportedFeatureError(
            f"{OPTION}=dynamic is not supported yet by deltalog, and a static overwrite would replace all partitions "
            f"of the table {uri}: set the option {OPTION} (or {SETTING}) to static to do that"
        )
