"""Writes the logs of tables without data files, for tests of plots."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deltalog import DeltaTable
from tests.python.place import commit_file


def add(path: str, size: int = 100, **others: Any) -> dict[str, Any]:
    """Returns an `add` action. `stats` is an object, not JSON text."""
    stats = others.pop("stats", None)
    action = {
        "path": path,
        "size": size,
        "partitionValues": {},
        "modificationTime": 0,
        "dataChange": True,
        **others,
    }
    return {"add": action if stats is None else {**action, "stats": json.dumps(stats)}}


def remove(path: str, **others: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0, **others}}


def info(version: int, operation: str, seconds: int, **others: Any) -> dict[str, Any]:
    return {"commitInfo": {"timestamp": seconds * 1000, "operation": operation, "version": version, **others}}


def bounds(low: Any, high: Any, rows: int = 10, nulls: int = 0, column: str = "x") -> dict[str, Any]:
    """Returns the statistics of a file with one column. A bound that is None is left out."""
    found: dict[str, Any] = {"numRecords": rows, "nullCount": {column: nulls}}
    for name, value in (("minValues", low), ("maxValues", high)):
        if value is not None:
            found[name] = {column: value}
    return {"stats": found}


def table(
    path: Path,
    commits: Iterable[Sequence[dict[str, Any]]],
    columns: dict[str, Any],
    partition_by: Sequence[str] = (),
) -> DeltaTable:
    """Writes a log with these commits; the first one also has the protocol and the metadata."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()
    ]
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(partition_by),
        "configuration": {},
    }
    head = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors", "timestampNtz"],
                "writerFeatures": ["deletionVectors", "timestampNtz"],
            }
        },
        {"metaData": metadata},
    ]
    (path / "_delta_log").mkdir(parents=True)
    for version, actions in enumerate(commits):
        lines = [json.dumps(action) for action in [*(head if version == 0 else []), *actions]]
        commit_file(path, version).write_text("\n".join(lines) + "\n")
        made = [action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action]
        if made:
            # The time of a commit is the modification time of its file.
            os.utime(commit_file(path, version), (made[0], made[0]))
    return DeltaTable(path)
