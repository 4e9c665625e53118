"""`deltalake` reads the tables that deltalog writes, and vice versa."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from tests.golden.canonical import rows
from tests.interop.checkpoints import add_many_files, leave_newest_checkpoint, write_checkpoints
from tests.interop.data import PARTITION_BY, PARTITIONS, TYPES

# The two packages have the same functions, so each test runs twice, with the roles swapped.
PAIRS = [
    pytest.param(deltalog, deltalake, id="ours to theirs"),
    pytest.param(deltalake, deltalog, id="theirs to ours"),
]


def read(package: Any, path: Path, version: int | None = None) -> pa.Table:
    if package is deltalog:
        return pa.table(deltalog.DeltaTable(path, version=version).to_arrow())
    return deltalake.DeltaTable(path, version=version).to_pyarrow_table()


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_every_type(writer: Any, reader: Any, tmp_path: Path) -> None:
    writer.write_deltalake(tmp_path, TYPES)
    assert rows(read(reader, tmp_path)) == rows(TYPES)


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_partition_values_are_escaped_and_typed(writer: Any, reader: Any, tmp_path: Path) -> None:
    writer.write_deltalake(tmp_path, PARTITIONS, partition_by=PARTITION_BY)
    assert rows(read(reader, tmp_path)) == rows(PARTITIONS)


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_both_write_alternately(writer: Any, reader: Any, tmp_path: Path) -> None:
    first, second = (
        TYPES.take([0, 1]),
        TYPES.take([2]),
    )  # The rows are copied with `take`, because some writers abort if they get slices.
    writer.write_deltalake(tmp_path, first)
    reader.write_deltalake(tmp_path, second, mode="append")
    writer.write_deltalake(tmp_path, second, mode="overwrite")
    for package in (writer, reader):
        assert rows(read(package, tmp_path, 0)) == rows(first)
        assert rows(read(package, tmp_path, 1)) == rows(TYPES)
        assert rows(read(package, tmp_path)) == rows(second)


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_checkpoint_without_the_commits_before_it(writer: Any, reader: Any, tmp_path: Path) -> None:
    """The checkpoint is the only source of the state: the commits that it covers are removed before the other side
    reads.
    """
    data = PARTITIONS.take([0, 1, 2])
    writer.write_deltalake(
        tmp_path, data, partition_by=PARTITION_BY, configuration={"delta.checkpointInterval": "5"}
    )
    for number in range(1, 8):
        writer.write_deltalake(
            tmp_path, data, mode="overwrite" if number == 3 else "append", partition_by=PARTITION_BY
        )
    if writer is deltalake:
        deltalake.DeltaTable(tmp_path, version=5).create_checkpoint()
    log = tmp_path / "_delta_log"
    newest = max(int(file.name[:20]) for file in log.glob("*.checkpoint.parquet"))
    for number in range(newest + 1):
        (log / f"{number:020}.json").unlink()
    assert rows(read(reader, tmp_path)) == rows(pa.concat_tables([data] * 5))


# For each form of checkpoints: the table properties that select it, and the end of the second checkpoint's file name.
CHECKPOINTS = {
    "classic": ({}, "checkpoint.parquet"),
    "structs": ({"delta.checkpoint.writeStatsAsStruct": "true"}, "checkpoint.parquet"),
    "structs alone": (
        {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"},
        "checkpoint.parquet",
    ),
    "v2": ({"delta.checkpointPolicy": "v2"}, ".parquet"),
    "v2, structs": (
        {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": "true"},
        ".parquet",
    ),
}


@pytest.mark.parametrize("form", CHECKPOINTS)
def test_they_read_our_checkpoints(form: str, tmp_path: Path) -> None:
    """The rows, and the files that a filter keeps, come from the newest checkpoint and the commits after it."""
    properties, ending = CHECKPOINTS[form]
    table = write_checkpoints(tmp_path, properties)
    log = tmp_path / "_delta_log"
    newest = max(log.glob("*.checkpoint.*"), key=lambda file: file.name[:20])
    assert newest.name.endswith(ending)
    assert int(newest.name[:20]) == table.version() - 1
    theirs = deltalake.DeltaTable(tmp_path)
    # The test uses the query engine of `deltalake`, because its pyarrow dataset refuses newer features.
    assert rows(pa.table(theirs.scan())) == rows(pa.table(table.to_arrow()))
    for predicate in ("value = 3", "string = 'a b'", "int IS NULL"):
        assert len(theirs.file_uris(file_pruning_predicate=predicate)) >= len(table.file_uris(predicate)) > 0
        found = pa.table(theirs.scan(predicate=predicate))
        assert rows(found) == rows(pa.table(table.to_arrow(predicate=predicate))), predicate


def test_they_read_our_sidecars(tmp_path: Path) -> None:
    """There are two checkpoints with sidecars. The second one reuses the sidecars of the first one, and adds one
    sidecar for the new file.
    """
    configuration = {"delta.checkpointPolicy": "v2"}
    number = add_many_files(tmp_path, configuration)
    deltalog.DeltaTable(tmp_path).create_checkpoint()
    sidecars = tmp_path / "_delta_log" / "_sidecars"
    first = {file.name for file in sidecars.iterdir()}
    deltalog.write_deltalake(tmp_path, pa.table({"id": [-1]}), mode="append")
    deltalog.DeltaTable(tmp_path).create_checkpoint()
    second = {file.name for file in sidecars.iterdir()} - first
    assert len(second) == 1
    deltalog.write_deltalake(tmp_path, pa.table({"id": [-2]}), mode="append")
    leave_newest_checkpoint(tmp_path)
    for files in (deltalog.DeltaTable(tmp_path).file_uris(), deltalake.DeltaTable(tmp_path).file_uris()):
        assert len(set(files)) == len(files) == number + 2


def test_metadata_that_we_write(tmp_path: Path) -> None:
    configuration = {"delta.appendOnly": "false", "owner": "é"}
    deltalog.write_deltalake(
        tmp_path, PARTITIONS, partition_by=["int"], name="n", description="d", configuration=configuration
    )
    theirs = deltalake.DeltaTable(tmp_path).metadata()
    assert (theirs.name, theirs.description, theirs.partition_columns) == ("n", "d", ["int"])
    assert configuration.items() <= theirs.configuration.items()


def test_change_data_feeds(tmp_path: Path) -> None:
    """Both packages read the same change data feed. `deltalake` wrote most of the table. Some changes are recorded in
    change data files, others are inferred from the file actions, and the last commits are by deltalog.
    """
    theirs = deltalake.DeltaTable.create(
        tmp_path,
        schema=deltalake.Schema.from_arrow(pa.schema([("id", pa.int64()), ("p", pa.string())])),
        partition_by=["p"],
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    deltalake.write_deltalake(
        theirs, pa.table({"id": range(20), "p": [f"p{number % 3}" for number in range(20)]}), mode="append"
    )
    theirs.update(updates={"id": "id + 100"}, predicate="id % 5 = 1")
    theirs.delete("id < 4")
    theirs.delete("p = 'p2'")
    source = pa.table({"id": [6, 9, 300], "p": ["p0", "p0", "new"]})
    merge = theirs.merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_delete("s.id = 6").when_matched_update(
        {"p": "'moved'"}
    ).when_not_matched_insert_all().execute()
    theirs.optimize.compact()
    deltalog.write_deltalake(
        tmp_path, pa.table({"id": pa.array([400], pa.int64()), "p": [None]}), mode="append"
    )
    deltalog.write_deltalake(
        tmp_path, pa.table({"id": pa.array([500], pa.int64()), "p": ["p0"]}), mode="overwrite"
    )

    def comparable(table: Any) -> list[str]:
        return rows(pa.table(table).drop_columns(["_commit_timestamp"]))

    newest = deltalog.DeltaTable(tmp_path)
    for start in range(newest.version()):
        expected = comparable(deltalake.DeltaTable(tmp_path).load_cdf(starting_version=start))
        assert comparable(newest.load_cdf(start)) == expected, start
        assert len(expected) > 0


def test_decimals_that_a_double_cannot_hold(tmp_path: Path) -> None:
    """`deltalake` writes bounds of decimals as doubles, which "Per-file Statistics" does not allow. The rows must be
    found nevertheless, and such a bound must not be returned as an exact answer.
    """
    value = Decimal("12345678901234567.89")
    deltalake.write_deltalake(tmp_path, pa.table({"d": pa.array([value], pa.decimal128(38, 2))}))
    table = deltalog.DeltaTable(tmp_path)
    assert "1.2345678901234568e+16" in (tmp_path / "_delta_log" / f"{0:020}.json").read_text()
    for predicate in (
        "d < 12345678901234567.95BD",
        "d = 12345678901234567.89BD",
        "d > 12345678901234567.88BD",
    ):
        assert pa.table(table.to_arrow(predicate=predicate)).column("d").to_pylist() == [value], predicate
    assert table.min_max("d") is None
    assert pa.table(table.to_arrow(predicate="d < 12345678901234000BD")).num_rows == 0


def test_they_accept_our_checksums_compactions_and_clean_up(tmp_path: Path) -> None:
    """`deltalake` reads every version of a table with checksums and log compactions of deltalog. It also reads the
    remaining versions after deltalog has cleaned up the log. Then both packages continue to write to the table.
    """
    properties = {"delta.checkpointInterval": "4", "deltalog.logCompactionInterval": "3"}
    data = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    for number in range(11):
        if number == 6:
            deltalog.write_deltalake(tmp_path, data, mode="overwrite")
        else:
            deltalog.write_deltalake(tmp_path, data, mode="append", configuration=properties)
    log = tmp_path / "_delta_log"
    assert len(list(log.glob("*.crc"))) == 11
    assert len(list(log.glob("*.compacted.json"))) == 3
    for version in range(11):
        assert deltalake.DeltaTable(tmp_path, version=version).to_pyarrow_table().num_rows == len(
            read(deltalog, tmp_path, version)
        )
    for file in log.iterdir():
        os.utime(file, (0, 0))
    assert deltalog.DeltaTable(tmp_path).cleanup_metadata()
    for version in (8, 9, 10):
        assert rows(read(deltalake, tmp_path, version)) == rows(read(deltalog, tmp_path, version))
    deltalake.write_deltalake(tmp_path, data, mode="append")
    deltalog.write_deltalake(tmp_path, data, mode="append")
    assert rows(read(deltalake, tmp_path)) == rows(read(deltalog, tmp_path))
    assert deltalog.DeltaTable(tmp_path).verify().ok


def test_what_they_delete_of_our_files_stays_deleted(tmp_path: Path) -> None:
    """Protocol: "Add File and Remove File". `deltalake` encodes non-ASCII characters of paths when it removes files,
    and compares paths as strings.
    """
    data = pa.table({"id": pa.array(range(4), pa.int64()), "é": ["ü", "a b", "日%", None]})
    deltalog.write_deltalake(tmp_path, data, partition_by=["é"])
    theirs = deltalake.DeltaTable(tmp_path)
    theirs.delete("id < 3")
    theirs.create_checkpoint()
    leave_newest_checkpoint(tmp_path)
    assert rows(read(deltalog, tmp_path)) == rows(read(deltalake, tmp_path)) == rows(data.slice(3))
