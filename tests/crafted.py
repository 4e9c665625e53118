"""Crafts tables that no available writer produces. The log is written as JSON, and data files with pyarrow."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_BASE: dict[str, Any] = {"modificationTime": 0, "dataChange": True}


def field(name: str, data_type: Any, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns a nullable field of a schema (protocol: "Schema Serialization Format")."""
    return {"name": name, "type": data_type, "nullable": True, "metadata": dict(metadata or {})}


def struct(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a struct type, or a schema."""
    return {"type": "struct", "fields": list(fields)}


class CraftedTable:
    """Collects actions and commits them as one version after another, starting at version 0; files that exist are
    replaced.

    `schema` is a list of fields, or the JSON text of the schema. `features` are reader and writer features,
    `writer_features` only writer features.
    """

    def __init__(
        self,
        path: Path,
        schema: Sequence[Mapping[str, Any]] | str,
        *,
        partition_columns: Sequence[str] = (),
        features: Sequence[str] = (),
        writer_features: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self._log = path / "_delta_log"
        self._log.mkdir(parents=True, exist_ok=True)
        self._version = 0
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": list(features)}
        self._actions: list[dict[str, Any]] = [
            {"protocol": {**protocol, "writerFeatures": [*features, *writer_features]}},
            {
                "metaData": {
                    "id": "t",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": schema if isinstance(schema, str) else json.dumps(struct(*schema)),
                    "partitionColumns": list(partition_columns),
                    "configuration": dict(configuration or {}),
                }
            },
        ]

    def write(self, name: str, data: pa.Table, **options: Any) -> Path:
        """Writes a data file without adding it; `options` are passed to `pyarrow.parquet.write_table`."""
        pq.write_table(data, self.path / name, **options)
        return self.path / name

    def add(
        self, name: str, *, stats: Mapping[str, Any] | None = None, vector: Any = None, **fields: Any
    ) -> None:
        """Adds an existing file with the next commit. `fields` are additional fields of its `add` action."""
        add = {
            "path": name,
            "partitionValues": {},
            "size": (self.path / name).stat().st_size,
            **_BASE,
            **fields,
        }
        if stats is not None:
            add["stats"] = json.dumps(stats)
        if vector is not None:
            add["deletionVector"] = vector
        self._actions.append({"add": add})

    def remove(self, name: str, **fields: Any) -> None:
        """Removes a file in the next commit."""
        self._actions.append({"remove": {"path": name, "deletionTimestamp": 0, "dataChange": True, **fields}})

    def commit(self) -> Path:
        """Writes the collected actions as the next version; returns the table's path."""
        lines = "".join(json.dumps(action) + "\n" for action in self._actions)
        (self._log / f"{self._version:020}.json").write_text(lines)
        self._version += 1
        self._actions = []
        return self.path
