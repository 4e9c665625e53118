"""Creates tables that can be read only from a checkpoint that deltalog wrote and the commits after it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import deltalog
from tests.interop.data import PARTITION_BY, PARTITIONS


def write_checkpoints(table: Path, properties: dict[str, str]) -> deltalog.DeltaTable:
    """Writes a few versions with two checkpoints, and a commit after them. Deletes everything that the second
    checkpoint covers.
    """
    data = PARTITIONS.take(list(range(8)))
    deltalog.write_deltalake(table, data, partition_by=PARTITION_BY, configuration=properties)
    deltalog.DeltaTable(table).create_checkpoint()
    deltalog.write_deltalake(table, PARTITIONS, mode="overwrite")
    deltalog.write_deltalake(table, data, mode="append")
    deltalog.DeltaTable(table).create_checkpoint()
    deltalog.write_deltalake(table, data.take([0]), mode="append")
    leave_newest_checkpoint(table)
    return deltalog.DeltaTable(table)


def add_many_files(table: Path, properties: dict[str, str]) -> int:
    """Creates a table whose log names so many files that a V2 checkpoint puts them into sidecars.

    Only the first file exists. Returns the number of files.
    """
    count = 20_000
    deltalog.write_deltalake(table, pa.table({"id": [0]}), configuration=properties)
    stats = json.dumps(
        {"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 1}, "nullCount": {"id": 0}}
    )
    add = {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True, "stats": stats}
    lines = [json.dumps({"add": {"path": f"{number}.parquet", **add}}) for number in range(count)]
    (table / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines) + "\n")
    return count + 1


def leave_newest_checkpoint(table: Path) -> None:
    """Removes everything that the newest checkpoint covers: commits, and older checkpoints."""
    log = table / "_delta_log"
    newest = max(log.glob("*.checkpoint.*"), key=lambda file: file.name[:20])
    for file in log.iterdir():
        if (
            file.is_file()
            and file.name[:20].isdigit()
            and file != newest
            and file.name[:20] <= newest.name[:20]
        ):
            file.unlink()
