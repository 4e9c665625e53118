"""Creates small tables to mutate. A table is returned as the files that it consists of.

The tables differ: one has partitions and checkpoints; one has deletion vectors, a change data feed, row ids, rules and
default values; one has column mapping and a V2 checkpoint; one has nested columns and variants.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa

import deltalog
from deltalog import DeltaTable, Field, Schema, write_deltalake
from tests import variants

Files = dict[str, bytes]


def base_tables() -> list[Files]:
    with tempfile.TemporaryDirectory() as directory:
        return [_files(make(Path(directory, str(number)))) for number, make in enumerate(_MAKERS)]


def rows(first: int, count: int = 20) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "f": [number / 3 for number in numbers],
            "s": [f"text {number}" if number % 3 else None for number in numbers],
            "p": [str(number % 2) for number in numbers],
        }
    )


def _partitioned(path: Path) -> Path:
    for version in range(4):
        write_deltalake(
            path,
            rows(version * 100),
            mode="append",
            partition_by=["p"],
            configuration={"delta.checkpointInterval": "2"} if version == 0 else None,
        )
    DeltaTable(path).delete("n = 3")
    return path


def _with_vectors(path: Path) -> Path:
    schema = Schema(
        [
            Field("n", "long"),
            Field("f", "double"),
            Field("s", "string"),
            Field("p", "string"),
            Field("g", "long", metadata={"delta.generationExpression": "n + 1"}),
        ]
    )
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
        "delta.feature.allowColumnDefaults": "supported",
    }
    table = DeltaTable.create(path, schema=schema, configuration=properties)
    table.alter.add_constraint({"positive": "n >= 0"})
    table.alter.set_column_default("s", "'nothing'")
    write_deltalake(path, rows(0), mode="append")
    write_deltalake(path, rows(20), mode="append")
    table = DeltaTable(path)
    table.delete("n % 5 = 0")
    table.update({"s": "'changed'"}, predicate="n % 7 = 0")
    return path


def _mapped(path: Path) -> Path:
    properties = {"delta.columnMapping.mode": "name", "delta.checkpointPolicy": "v2"}
    write_deltalake(path, rows(0), configuration=properties)
    write_deltalake(path, rows(100), mode="append")
    table = DeltaTable(path)
    table.alter.rename_column("s", "renamed s")
    table.create_checkpoint()
    write_deltalake(path, rows(200).rename_columns(["n", "f", "renamed s", "p"]), mode="append")
    return path


def _nested(path: Path) -> Path:
    nested = variants.table().rename_columns(["n", "v", "s", "l", "m"])
    write_deltalake(path, nested, configuration={"delta.enableDeletionVectors": "true"})
    write_deltalake(path, nested, mode="append")
    table = DeltaTable(path)
    table.delete("n = 1")
    table.create_checkpoint()
    return path


_MAKERS = (_partitioned, _with_vectors, _mapped, _nested)


def _files(path: Path) -> Files:
    found = {}
    for directory, _, names in os.walk(path):
        for name in names:
            file = Path(directory, name)
            found[str(file.relative_to(path))] = file.read_bytes()
    assert any(name.endswith(".json") for name in found), deltalog.__version__
    return found
