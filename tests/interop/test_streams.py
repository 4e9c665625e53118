"""deltalog continues streams from checkpoints of the JVM connector, and vice versa."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import SchemaMismatchError
from tests.interop.conftest import Jvm
from tests.spark.streams.queries import offsets, start, stream

Found = list[list[Any]]
Reader = Callable[..., tuple[Found, str | None]]


@pytest.fixture
def readers(spark: SparkSession, jvm: Jvm) -> dict[str, Reader]:
    def ours(
        table: Path, checkpoint: Path, options: dict[str, str], column: str = "id"
    ) -> tuple[Found, str | None]:
        found: dict[int, list[Any]] = {}

        def each(rows: DataFrame, number: int) -> None:
            found[number] = sorted(row[0] for row in rows.collect())

        query = start(stream(spark, table, **options).selectExpr(column), checkpoint, each, availableNow=True)
        try:
            query.awaitTermination()
        except SchemaMismatchError as error:
            return [found[number] for number in sorted(found)], str(error)
        return [found[number] for number in sorted(found)], None

    def theirs(
        table: Path, checkpoint: Path, options: dict[str, str], column: str = "id"
    ) -> tuple[Found, str | None]:
        return jvm.stream(table, checkpoint, options, column)

    return {"ours": ours, "theirs": theirs}


def read(reader: Reader, table: Path, checkpoint: Path, options: dict[str, str], column: str = "id") -> Found:
    """Continues a stream, and checks that it does not fail."""
    found, error = reader(table, checkpoint, options, column)
    assert error is None, error
    return found


def write(path: Path, first: int, names: list[str]) -> None:
    """Makes a commit that adds, for each partition in `names`, a file with one row."""
    rows = pa.table({"id": range(first, first + len(names)), "p": names})
    write_deltalake(path, rows, mode="append", partition_by=["p"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Creates a table whose files all have the same modification time, and have paths that must be encoded."""
    path = tmp_path / "table"
    write(path, 0, ["a b", "ä", "a%20b", "c"])
    write(path, 4, ["c", "a b"])
    for file in path.rglob("*.parquet"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return path


def change(path: Path) -> None:
    """Makes commits of all kinds that a stream of appended rows can read."""
    write(path, 6, ["d", "a b", "ä"])
    DeltaTable(path).optimize.compact()
    write(path, 9, ["d"])
    DeltaTable(path).alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    write(path, 10, ["c", "d"])


def copied(checkpoint: Path, done: int) -> Path:
    """Returns a copy of a checkpoint as it was after `done` batches."""
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
def test_a_checkpoint_can_be_continued_after_each_batch(
    readers: dict[str, Reader], table: Path, tmp_path: Path, first: str, second: str, options: dict[str, str]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    begun = read(readers[first], table, checkpoint, options)
    change(table)
    begun += read(readers[first], table, checkpoint, options)
    whole = offsets(checkpoint)
    assert len(begun) == len(whole) > 3
    for done in range(1, len(whole)):
        other = copied(checkpoint, done)
        assert read(readers[second], table, other, options) == begun[done:]
        assert offsets(other) == whole


@pytest.mark.parametrize(
    ("first", "second"),
    [pytest.param("ours", "theirs", marks=pytest.mark.thorough), ("theirs", "ours")],
)
def test_a_checkpoint_of_a_change_feed_can_be_continued_after_each_batch(
    readers: dict[str, Reader], tmp_path: Path, first: str, second: str
) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    rows = pa.table({"id": range(6), "p": ["a", "b"] * 3})
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(table, rows, partition_by=["p"], configuration=feed)
    options = {"readChangeFeed": "true", "maxFilesPerTrigger": "2"}
    column = "concat_ws(' ', _commit_version, _change_type, id)"
    begun = read(readers[first], table, checkpoint, options, column)
    write(table, 6, ["a", "b", "c"])
    DeltaTable(table).update({"id": "id + 100"}, predicate="id < 4")
    DeltaTable(table).delete("p = 'b'")
    DeltaTable(table).optimize.compact()
    write(table, 9, ["a"])
    begun += read(readers[first], table, checkpoint, options, column)
    whole = offsets(checkpoint)
    assert len(begun) == len(whole) > 3
    kinds = {row.split()[1] for batch in begun for row in batch}
    assert kinds == {"insert", "update_preimage", "update_postimage", "delete"}
    for done in range(1, len(whole)):
        other = copied(checkpoint, done)
        assert read(readers[second], table, other, options, column) == begun[done:]
        assert offsets(other) == whole


@pytest.mark.parametrize(
    "order",
    [pytest.param([name], marks=pytest.mark.thorough) for name in ("ours", "theirs")]
    + [["ours", "theirs"], ["theirs", "ours"]],
    ids="-".join,
)
def test_schema_logs_and_their_offsets_can_be_continued(
    spark: SparkSession, readers: dict[str, Reader], tmp_path: Path, order: list[str]
) -> None:
    """A run of the stream ends before each schema change. The next run may use the other engine."""
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    name = f"deltalog.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, a STRING, b STRING) USING deltalog "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (0, 'a', 'b')")
    options = {
        "schemaTrackingLocation": str(checkpoint),
        "allowSourceColumnRename": "always",
        "allowSourceColumnDrop": "always",
    }
    runs = itertools.cycle(order)
    found = read(readers[next(runs)], table, checkpoint, options)
    assert found == [[0]]
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'b')")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN a TO c")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'a', 'b')")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN b")
    spark.sql(f"INSERT INTO {name} VALUES (3, 'a')")
    errors = 0
    for run in itertools.islice(runs, 12):
        rows, error = readers[run](table, checkpoint, options)
        found += rows
        errors += error is not None
        if error is None:
            break
    assert error is None
    assert errors >= 2
    assert [row for batch in found for row in batch] == [0, 1, 2, 3]
    places = [json.loads(offset) for offset in offsets(checkpoint)]
    assert [place["index"] for place in places if place["sourceVersion"] == 3] == [-20, -19, -20, -19]
