"""Checkpoints of streams that the JVM connector has begun and deltalog continues, and the other way round."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from tests.interop.conftest import Jvm
from tests.spark.streams.queries import batches, ids, offsets, stream

Reader = Callable[[Path, Path, dict[str, str]], list[list[Any]]]


@pytest.fixture
def readers(spark: SparkSession, jvm: Jvm) -> dict[str, Reader]:
    def ours(table: Path, checkpoint: Path, options: dict[str, str]) -> list[list[Any]]:
        return ids(batches(stream(spark, table, **options), checkpoint))

    def theirs(table: Path, checkpoint: Path, options: dict[str, str]) -> list[list[Any]]:
        return jvm.stream(table, checkpoint, **options)

    return {"ours": ours, "theirs": theirs}


def write(path: Path, first: int, names: list[str]) -> None:
    """Appends a commit with a file in each of the partitions."""
    rows = pa.table({"id": range(first, first + len(names)), "p": names})
    write_deltalake(path, rows, mode="append", partition_by=["p"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose snapshot has files of one time, and of paths that are encoded; and commits after it."""
    path = tmp_path / "table"
    write(path, 0, ["a b", "ä", "a%20b", "c"])
    write(path, 4, ["c", "a b"])
    for file in path.rglob("*.parquet"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return path


def change(path: Path) -> None:
    """Makes commits of all kinds that a stream of appends may see."""
    write(path, 6, ["d", "a b", "ä"])
    DeltaTable(path).optimize.compact()
    write(path, 9, ["d"])
    DeltaTable(path).alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    write(path, 10, ["c", "d"])


def copied(checkpoint: Path, done: int) -> Path:
    """Returns a copy of a checkpoint as it was after so many batches."""
    copy = checkpoint.with_name(f"{checkpoint.name} {done}")
    shutil.copytree(checkpoint, copy)
    for kind in ("offsets", "commits"):
        for file in (copy / kind).iterdir():
            if int(file.name.strip(".").split(".")[0]) >= done:
                file.unlink()
    return copy


@pytest.mark.parametrize(("first", "second"), [("ours", "theirs"), ("theirs", "ours")])
@pytest.mark.parametrize(
    "options", [{"maxFilesPerTrigger": "2"}, {"maxBytesPerTrigger": "1", "startingVersion": "1"}], ids=str
)
def test_a_checkpoint_is_continued_at_each_batch(
    readers: dict[str, Reader], table: Path, tmp_path: Path, first: str, second: str, options: dict[str, str]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    begun = readers[first](table, checkpoint, options)
    change(table)
    begun += readers[first](table, checkpoint, options)
    whole = offsets(checkpoint)
    assert len(begun) == len(whole) > 3
    for done in range(1, len(whole)):
        other = copied(checkpoint, done)
        assert readers[second](table, other, options) == begun[done:]
        assert offsets(other) == whole
