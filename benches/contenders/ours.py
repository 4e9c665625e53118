"""deltalog from Python."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

import deltalog
from benches.watch import Watch

COLUMNS = ["path", "size", "partition_values"]


def _count(files: Any) -> int:
    """Takes the stream batch by batch, as a program does that does not want to hold it."""
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(files))


def open_list(watch: Watch, table: str) -> dict[str, Any]:
    with watch("open + list"):
        with watch("open"):
            opened = deltalog.DeltaTable(table)
            opened.protocol(), opened.metadata(), opened.schema()
        files = _count(opened.files(columns=COLUMNS))
    return {"version": opened.version(), "files": files}


def plan(watch: Watch, table: str, predicate: str) -> dict[str, Any]:
    with watch("plan"):
        files = _count(deltalog.DeltaTable(table).files(predicate=predicate, columns=COLUMNS))
    return {"files": files}


def refresh(watch: Watch, table: str, commit: str, commit_to: str) -> dict[str, Any]:
    opened = deltalog.DeltaTable(table)
    with watch("no-op"):
        opened.update()
    before = opened.version()
    os.link(commit, commit_to)
    with watch("one commit"):
        opened.update()
    return {"before": before, "after": opened.version()}
