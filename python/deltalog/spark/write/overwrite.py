"""Decides which rows an overwrite replaces: the one place for every way in."""

from deltalog._internal import SparkWrite
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.options import Options

# The option goes before the session's setting, as in Spark.
OPTION = "partitionOverwriteMode"
SETTING = "spark.sql.sources.partitionOverwriteMode"


def check_overwrite(pending: SparkWrite, uri: str, options: Options, session_mode: str | None) -> None:
    """Checks that an overwrite is meant to replace the whole table, which is the only kind there is yet.

    Both modes mean the same for a new table and for a table without partition columns. `session_mode` is
    None where the session's setting cannot be known; then the option must say what is meant.
    """
    option = options.values.get(OPTION.lower())
    if option is not None and option.strip().lower() not in ("static", "dynamic"):
        raise InvalidArgumentError(f"{OPTION} is static or dynamic, not {option!r}")
    if pending.table_schema_json is None or not pending.partition_columns:
        return
    mode = session_mode if option is None else option
    if mode is None:
        raise InvalidArgumentError(
            f"cannot tell whether the overwrite replaces the whole table {uri} or some of its partitions, because Spark does not "
            f"show the setting {SETTING} to Python data sources: set the option {OPTION} to static to replace the whole table"
        )
    if mode.strip().lower() == "dynamic":
        raise UnsupportedFeatureError(
            f"{OPTION}=dynamic is not supported yet by deltalog, and a static overwrite would replace all partitions of the "
            f"table {uri}: set the option {OPTION} (or {SETTING}) to static to do that"
        )
