"""Decides whether a write or a MERGE changes the schema of the table.

| option | session setting | what it does |
| --- | --- | --- |
| `mergeSchema` | `spark.databricks.delta.schema.autoMerge.enabled` | adds columns and nested fields of the data |
| `overwriteSchema` | | gives the table the schema of the data, in the mode overwrite |

Names and precedence are the same as in the JVM connector. Unlike in the JVM connector, `overwriteSchema` without
`partitionBy` keeps the partition columns: an overwrite should not lose them unnoticed. A Python data source does not
see the session's settings. The setting also applies to MERGE. `MERGE WITH SCHEMA EVOLUTION` has the same effect for
one statement. `MergeEvolution.java` decides which columns a MERGE adds.
"""

import json

from deltalog._internal import AlreadyApplied, Snapshot, SparkStatement
from deltalog.spark.options import Options
from deltalog.spark.write.settings import Settings

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"


def schema_mode(options: Options, settings: Settings | None) -> str | None:
    """Returns how a write may change the schema, by its options and the settings of the session: `merge`, `overwrite`,
    or None if it may not. `settings` is None if the settings are unknown.
    """
    if options.is_true("overwriteSchema"):
        return "overwrite"
    merges = options.is_true("mergeSchema")
    if merges is None and settings is not None:
        merges = settings.boolean(AUTO_MERGE)
    return "merge" if merges else None


def changed_columns(base: Snapshot, data_schema: str) -> str:
    """Returns, as the JSON of a schema, the columns that are added or changed if data of this schema is merged into the
    table.
    """
    begun = SparkStatement.begin(base, data_schema=data_schema)
    write = None if isinstance(begun, AlreadyApplied) else begun[1]
    evolved = json.loads((write and write.table_schema_json) or base.schema_json)
    known = {field["name"]: field["type"] for field in json.loads(base.schema_json)["fields"]}
    changed = [field for field in evolved["fields"] if known.get(field["name"]) != field["type"]]
    return json.dumps({**evolved, "fields": changed})
