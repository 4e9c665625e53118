"""A table of many files behind a classic checkpoint, with a few commits after it.

Protocol: "Checkpoints", "Checkpoint Schema", "Last Checkpoint File".

- The checkpoint is at version 100 and looks like Spark's: Snappy, row groups of about 128 MiB, page index, JSON
  statistics without parsed columns, and tombstones besides files. The order of the files has no meaning (Spark orders
  them by the hash of the path; here their partitions are random).
- Five commits follow. Each adds as many files as it removes from the checkpoint, so the table has exactly
  `files` files.
- The commits before the checkpoint are missing, as after a clean-up of the log. There are no data files.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benches.tables.actions import (
    CREATED_MS,
    MONTHS,
    PARTITION_COLUMNS,
    REGIONS,
    WIDE,
    Files,
    commit_info,
    lines,
    partitioned_metadata,
    protocol,
)

VERSION = 100
TAIL = 5
CHANGES_PER_COMMIT = 10
ROWS_PER_GROUP = 180_000

_TEXTS = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "tags": _TEXTS,
                "baseRowId": pa.int64(),
                "defaultRowCommitVersion": pa.int64(),
                "stats": pa.string(),
            }
        ),
        "remove": pa.struct({"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.string()),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
    }
)


@dataclass(frozen=True)
class Checkpointed:
    """A table of `files` files. With `v2`, the table's policy requires V2 checkpoints, although the existing
    checkpoint is classic.
    """

    files: int
    v2: bool = False

    @property
    def name(self) -> str:
        return f"checkpoint-{self.files}{'-v2' if self.v2 else ''}"

    def parameters(self) -> dict[str, Any]:
        # Tables without the policy keep the stamp that they had before this parameter existed.
        return {name: value for name, value in asdict(self).items() if value is not False}

    def write(self, table: Path) -> None:
        log = table / "_delta_log"
        log.mkdir()
        checkpoint = log / f"{VERSION:020}.checkpoint.parquet"
        rows, removable = self._write_checkpoint(checkpoint)
        pointer = {
            "version": VERSION,
            "size": rows,
            "sizeInBytes": checkpoint.stat().st_size,
            "numOfAddFiles": self.files,
        }
        (log / "_last_checkpoint").write_text(json.dumps(pointer, separators=(",", ":")))
        for number in range(TAIL):
            version = VERSION + 1 + number
            gone = removable[number * CHANGES_PER_COMMIT : (number + 1) * CHANGES_PER_COMMIT]
            (log / f"{version:020}.json").write_text(commit(version, self.files, gone))

    def _write_checkpoint(self, target: Path) -> tuple[int, list[str]]:
        """Writes the checkpoint. Returns the number of its actions, and the paths that later commits may remove."""
        rows, removable = 0, []
        head = _others(self.files // 1_000, self.v2)
        with pq.ParquetWriter(target, SCHEMA, compression="snappy", write_page_index=True) as writer:
            for first in range(0, self.files, ROWS_PER_GROUP):
                files = Files.make(WIDE, first, min(ROWS_PER_GROUP, self.files - first))
                group = _adds(files)
                if first == 0:
                    group = pa.concat_tables([head, group])
                    removable = files.path[-TAIL * CHANGES_PER_COMMIT :].to_pylist()
                writer.write_table(group, row_group_size=len(group))
                rows += len(group)
        return rows, removable


def commit(version: int, files: int, removed: list[str]) -> str:
    """Returns the content of a commit after the checkpoint, which adds new files and removes the given old files."""
    number = version - VERSION - 1
    added = Files.make(WIDE, files + number * CHANGES_PER_COMMIT, CHANGES_PER_COMMIT)
    removes = [
        {"remove": {"path": path, "deletionTimestamp": CREATED_MS + version * 1_000, "dataChange": True}}
        for path in removed
    ]
    return lines(commit_info(version), *removes) + "".join(line + "\n" for line in added.json_lines())


def removed_later(files: int, count: int) -> list[str]:
    """Returns the paths of `count` live files from the beginning of the checkpoint."""
    return list(Files.make(WIDE, 0, min(ROWS_PER_GROUP, files)).path[:count].to_pylist())


def _others(tombstones: int, v2: bool) -> pa.Table:
    """Returns the rows of a checkpoint for all actions other than adds."""
    gone = [
        {"path": f"month=2022-12/region=asia/part-{number:05}-gone.c000.snappy.parquet"}
        for number in range(tombstones)
    ]
    meta = partitioned_metadata(WIDE)
    meta["format"] = {"provider": "parquet", "options": []}
    meta["configuration"] = [("delta.checkpointPolicy", "v2")] if v2 else []
    features = ["v2Checkpoint"]
    with_features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    actions: list[dict[str, Any]] = [{"protocol": with_features if v2 else protocol()}, {"metaData": meta}]
    actions += [
        {"remove": {**remove, "deletionTimestamp": CREATED_MS, "dataChange": True}} for remove in gone
    ]
    return pa.Table.from_pylist(actions, SCHEMA)


def _adds(files: Files) -> pa.Table:
    count = len(files)
    values = np.empty(2 * count, np.int64)
    values[0::2], values[1::2] = files.month, len(MONTHS) + files.region
    offsets = pa.array(np.arange(0, 2 * count + 2, 2, dtype=np.int32))
    keys = pa.array(PARTITION_COLUMNS).take(np.tile([0, 1], count))
    of_add = {field.name: pa.nulls(count, field.type) for field in SCHEMA.field("add").type}
    of_add |= {
        "path": files.path,
        "partitionValues": pa.MapArray.from_arrays(offsets, keys, pa.array(MONTHS + REGIONS).take(values)),
        "size": files.size,
        "modificationTime": files.modification_time,
        "dataChange": pa.repeat(pa.scalar(False), count),
        "stats": files.statistics(),
    }
    add = pa.StructArray.from_arrays(list(of_add.values()), fields=list(SCHEMA.field("add").type))
    return pa.table(
        {field.name: add if field.name == "add" else pa.nulls(count, field.type) for field in SCHEMA},
        schema=SCHEMA,
    )
