"""Whether a write changes the schema of the table.

| option | session setting | what it does |
| --- | --- | --- |
| `mergeSchema` | `spark.databricks.delta.schema.autoMerge.enabled` | adds columns and nested fields of the data |
| `overwriteSchema` | | gives the table the schema of the data, in the mode overwrite |

Names and precedence are those of the JVM connector. Unlike there, `overwriteSchema` without `partitionBy` keeps the
partition columns: an overwrite should not lose them unnoticed. A Python data source does not see the session's
settings.
"""

from typing import Any

from deltalog.spark.options import Options

_AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"


def schema_mode(options: Options, session: Any) -> str | None:
    """Returns `merge`, `overwrite` or None, by the options and the settings of the session (of the JVM; or None)."""
    if options.is_true("overwriteSchema"):
        return "overwrite"
    merges = options.is_true("mergeSchema")
    if merges is None and session is not None:
        setting = session.conf().getOption(_AUTO_MERGE)
        merges = bool(setting.isDefined()) and str(setting.get()).strip().lower() == "true"
    return "merge" if merges else None
