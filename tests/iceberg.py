"""Reads the field ids of columns and their parts, from logs and from files (PROTOCOL, "Iceberg Compatibility V2")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deltalog import DeltaTable

Ids = dict[str, int]
"""The field id of each column and part, by its path of physical names."""


def log_ids(table: DeltaTable) -> Ids:
    """Returns the ids in the table's schema. Columns without column mapping have none."""
    ids: Ids = {}
    _of_fields(json.loads(table.schema().to_json())["fields"], "", ids)
    return ids


def _of_fields(fields: list[dict[str, Any]], parent: str, ids: Ids) -> None:
    for field in fields:
        metadata = field["metadata"]
        name = metadata["delta.columnMapping.physicalName"]
        ids[f"{parent}{name}"] = metadata["delta.columnMapping.id"]
        for path, part in metadata.get("delta.columnMapping.nested.ids", {}).items():
            ids[f"{parent}{path}"] = part
        _of_type(field["type"], f"{parent}{name}.", ids)


def _of_type(data_type: Any, place: str, ids: Ids) -> None:
    match data_type:
        case {"type": "struct", "fields": fields}:
            _of_fields(fields, place, ids)
        case {"type": "array", "elementType": element}:
            _of_type(element, f"{place}element.", ids)
        case {"type": "map", "keyType": key, "valueType": value}:
            _of_type(key, f"{place}key.", ids)
            _of_type(value, f"{place}value.", ids)


def file_ids(path: Path) -> Ids:
    """Returns the ids in the footer of a file. Columns and parts without an id are left out."""
    ids: Ids = {}
    _of_arrow(list(pq.read_schema(path)), "", ids)
    return ids


def _of_arrow(fields: list[pa.Field], parent: str, ids: Ids) -> None:
    for field in fields:
        place = f"{parent}{field.name}"
        if field.metadata and b"PARQUET:field_id" in field.metadata:
            ids[place] = int(field.metadata[b"PARQUET:field_id"])
        if pa.types.is_struct(field.type):
            _of_arrow([field.type.field(index) for index in range(field.type.num_fields)], f"{place}.", ids)
        elif pa.types.is_list(field.type):
            _of_arrow([field.type.value_field], f"{place}.", ids)
        elif pa.types.is_map(field.type):
            _of_arrow([field.type.key_field, field.type.item_field], f"{place}.", ids)
