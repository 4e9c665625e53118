"""Converts the results of an engine to text, without the parts that differ in each run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StructType

VOLATILE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    # Spark numbers the columns of a plan, and the numbers differ in each run.
    (re.compile(r"#\d+L?"), ""),
    (re.compile(r"part-\d+-ID[-.\w]*"), "FILE"),
)
# Users do not see these numbers and names, and each engine chooses its own.
HIDDEN_METADATA = {"delta.columnMapping.physicalName", "delta.columnMapping.id"}
HIDDEN_PROPERTIES = {
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
}


class Texts:
    """Converts values to text."""

    def __init__(self, directory: Path, database: str) -> None:
        self._own = ((str(directory), "DIR"), (database, "DATABASE"))

    def rows(self, frame: DataFrame) -> str:
        return self.clean(" ".join(sorted(_value(tuple(row)) for row in frame.collect())))

    def clean(self, text: str) -> str:
        for own, name in self._own:
            text = text.replace(own, name)
        for pattern, name in VOLATILE:
            text = pattern.sub(name, text)
        return text.replace("\n", " ").replace("|", "¦")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_value(key)}: {_value(of)}" for key, of in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, tuple | Row):
        return "(" + ", ".join(map(_value, value)) + ")"
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else str(value)


def columns_text(schema: StructType) -> str:
    """Returns the columns as in a CREATE TABLE statement, each with its metadata as JSON."""
    found = []
    for column in schema.fields:
        metadata = {name: value for name, value in column.metadata.items() if name not in HIDDEN_METADATA}
        text = f"{column.name} {column.dataType.simpleString()}"
        if not column.nullable:
            text += " NOT NULL"
        if metadata:
            text += " " + json.dumps(metadata, sort_keys=True)
        found.append(text)
    return ", ".join(found).replace("|", "¦")


def log_state(log: Path) -> dict[str, str]:
    """Returns the operations of a log, oldest first, and the description of the table in its newest version."""
    operations: list[str] = []
    metadata: dict[str, Any] = {}
    protocol: dict[str, Any] = {}
    for commit in sorted(log.glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "commitInfo" in action:
                operations.append(action["commitInfo"].get("operation", "none"))
            metadata = action.get("metaData", metadata)
            protocol = action.get("protocol", protocol)
    if not metadata:
        return {}  # A statement that was refused may leave an empty log directory.
    properties = {
        name: value for name, value in metadata["configuration"].items() if name not in HIDDEN_PROPERTIES
    }
    features = sorted({*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())})
    versions = f"{protocol['minReaderVersion']}, {protocol['minWriterVersion']}"
    return {
        "history": ", ".join(operations),
        "partitions": ", ".join(metadata["partitionColumns"]),
        "comment": metadata.get("description") or "",
        "properties": ", ".join(f"{name}={value}" for name, value in sorted(properties.items())),
        "protocol": f"{versions}" + (f": {', '.join(features)}" if features else ""),
    }
