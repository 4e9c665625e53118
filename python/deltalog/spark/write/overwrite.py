"""Decides which rows an overwrite replaces, in the same way for all write APIs."""

from typing import NamedTuple

from deltalog._internal import SparkWrite
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.options import Options
from deltalog.spark.write.settings import Settings

# The option takes precedence over the session's setting, as in Spark.
OPTION = "partitionOverwriteMode"
SETTING = "spark.sql.sources.partitionOverwriteMode"
_CHECK = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"


class Replaced(NamedTuple):
    """The rows that an overwrite replaces."""

    mode: str | None
    """`static` or `dynamic`; None if this is unknown."""
    where: tuple[str, str, bool] | None = None
    """The predicate of the rows, the time zone for its times without a zone, and whether new rows must meet it."""


def replaced_rows(options: Options, settings: Settings | None) -> Replaced:
    """Returns the rows that the options of a write select, or else the settings of the session (None if they are
    unknown).
    """
    option = options.values.get(OPTION.lower())
    if option is not None and option.strip().lower() not in ("static", "dynamic"):
        raise InvalidArgumentError(f"{OPTION} must be static or dynamic, not {option!r}")
    given = None if option is None else option.strip().lower()
    if options.replace_where is not None:
        # As in the JVM connector, the option replaceWhere overrides the session setting.
        return Replaced(given or "static", (options.replace_where, *_evaluation(settings)))
    if given is None and settings is not None:
        given = settings.partition_overwrite_mode.lower()
    return Replaced(given)


def _evaluation(settings: Settings | None) -> tuple[str, bool]:
    """Returns the time zone for times without a zone (empty if it is unknown), and whether new rows must meet the
    predicate.
    """
    if settings is None:
        return "", True
    return settings.time_zone, settings.boolean(_CHECK) is not False


def check_overwrite(pending: SparkWrite, uri: str, replaced: Replaced) -> None:
    """Raises an error if it is unknown whether the mode is static or dynamic, and the result would differ.

    Both modes are the same for a new table and for a table without partition columns.
    """
    if replaced.mode is None and pending.table_schema_json is not None and pending.partition_columns:
        raise InvalidArgumentError(
            f"it is unknown whether the overwrite replaces the whole table {uri} or some of its partitions, because "
            f"Spark does not pass the setting {SETTING} to Python data sources: set the option {OPTION} to static to "
            "replace the whole table, or to dynamic to replace the partitions that the data has rows for"
        )
