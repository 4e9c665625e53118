"""OPTIMIZE rewrites many files as fewer files. Protocol: "Add File and Remove File"."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, InvalidArgumentError, Transaction, write_deltalake

Row = dict[str, Any]


def append(path: Path, rows: list[Row], **options: Any) -> None:
    write_deltalake(str(path), pa.Table.from_pylist(rows), mode="append", **options)


def rows_of(table: DeltaTable, **options: Any) -> list[Row]:
    rows = pa.table(table.to_arrow(**options)).to_pylist()
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


def of_deltalake(path: Path) -> list[Row]:
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path))).execute("select * from t")
    return sorted(pa.table(rows).to_pylist(), key=lambda row: repr(sorted(row.items())))


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    """Creates a table with three files in each of four partitions. One partition value is NULL, and one has special
    characters.
    """
    for number in range(3):
        rows = [
            {"id": 10 * number + at, "part": part, "text": f"text {at}"}
            for at, part in enumerate(["a", None, "x=/ %ü", "b"])
        ]
        append(tmp_path / "t", rows, **({"partition_by": ["part"]} if number == 0 else {}))
    return tmp_path / "t"


def test_each_partition_has_one_file_with_the_same_rows(partitioned: Path) -> None:
    table = DeltaTable(str(partitioned))
    before = rows_of(table)
    metrics = table.optimize.compact()
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"], metrics["partitionsOptimized"]) == (
        12,
        4,
        4,
    )
    assert (metrics["totalConsideredFiles"], metrics["totalFilesSkipped"]) == (12, 0)
    assert metrics["filesAdded"]["totalSize"] == sum(pa.table(table.files())["size"].to_pylist())
    assert table.version() == 3
    assert len(table.file_uris()) == 4
    assert len(table.file_uris("part IS NULL")) == 1
    assert rows_of(table) == before == of_deltalake(partitioned)
    assert table.optimize()["numFilesAdded"] == 0
    assert table.version() == 3


def test_a_filter_chooses_partitions(partitioned: Path) -> None:
    table = DeltaTable(str(partitioned))
    assert table.optimize.compact("part = 'a' OR part IS NULL")["numFilesRemoved"] == 6
    assert table.optimize.compact([("part", "=", "b")])["numFilesRemoved"] == 3
    assert sorted(len(table.file_uris(f"part = '{part}'")) for part in ("a", "b", "x=/ %ü")) == [1, 1, 3]
    with pytest.raises(InvalidArgumentError, match="columns that are not partition columns") as refused:
        table.optimize.compact("id > 3")
    assert refused.value.hint == "use a predicate on the partition columns (part), or none"
    for size in (0, -1, True, 1.5, "128MB", 1 << 70):
        with pytest.raises(InvalidArgumentError, match="target_size"):
            table.optimize.compact(target_size=size)  # type: ignore[arg-type]
    for interval in (-1, timedelta(-1), float("nan"), 1e30, "soon"):
        with pytest.raises(InvalidArgumentError, match=r"min_commit_interval.*timedelta"):
            table.optimize.compact(min_commit_interval=interval)  # type: ignore[arg-type]


def test_a_dry_run_says_what_would_be_done(partitioned: Path) -> None:
    table = DeltaTable(str(partitioned))
    planned = table.optimize.compact(dry_run=True)
    assert (planned["numFilesAdded"], table.version()) == (4, 2)
    done = table.optimize.compact()
    assert {name: planned[name] for name in ("numFilesRemoved", "filesRemoved", "numBins", "numBatches")} == {
        name: done[name] for name in ("numFilesRemoved", "filesRemoved", "numBins", "numBatches")
    }


def test_what_is_recorded(partitioned: Path) -> None:
    table = DeltaTable(str(partitioned))
    properties = CommitProperties(custom_metadata={"by": "me"})
    table.optimize.compact("part = 'a'", commit_properties=properties, min_commit_interval=timedelta(0))
    newest = table.history(1)[0]
    assert (newest["operation"], newest["by"]) == ("OPTIMIZE", "me")
    assert newest["operationParameters"]["predicate"] == "[\"part = 'a'\"]"
    assert newest["operationMetrics"]["numRemovedFiles"] == "3"
    with pytest.raises(Exception, match="progress of the application"):
        table.optimize.compact(commit_properties=CommitProperties(app_transactions=[Transaction("a", 1)]))


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_features_are_kept(tmp_path: Path, mode: str) -> None:
    """Deleted rows are left out, rows keep their ids, and the change data feed does not show the rewrite.

    Protocol: "Column Mapping", "Row Tracking", "Change Data Files".
    """
    path, column = tmp_path / "t", "name" if mode == "none" else "odd name"
    configuration = {
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": mode,
    }
    for start in (0, 10, 20):
        rows = [{"id": start + at, column: None if at % 3 else f"{at}"} for at in range(10)]
        append(path, rows, **({"configuration": configuration} if start == 0 else {}))
    table = DeltaTable(str(path))
    table.delete("id % 7 = 0")
    table.update({column: "'new'"}, predicate="id = 5")
    before = rows_of(table, row_ids=True)
    version = table.version()
    metrics = table.optimize.compact()
    assert metrics["deletionVectorStats"] == {
        "numDeletionVectorsRemoved": 3,
        "numDeletionVectorRowsRemoved": 6,
    }
    assert rows_of(table, row_ids=True) == before
    assert len(table.file_uris()) == 1
    assert pa.table(table.load_cdf(version + 1, version + 1)).num_rows == 0
    assert table.count("true") == 25


def test_statements_run_concurrently(tmp_path: Path) -> None:
    """While OPTIMIZE runs, appends and deletes in another thread neither fail nor conflict, and none is lost."""
    path = tmp_path / "t"
    for start in range(0, 200, 10):
        options = {"configuration": {"delta.enableDeletionVectors": "true"}} if start == 0 else {}
        append(path, [{"id": number} for number in range(start, start + 10)], **options)
    failures: list[BaseException] = []

    def others() -> None:
        try:
            for at in range(0, 200, 10):
                append(path, [{"id": 1000 + at}])
                # The DELETE finds its rows in the new files, to which OPTIMIZE has just moved them.
                DeltaTable(str(path)).delete(f"id = {at + 3}")
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            failures.append(error)

    thread = Thread(target=others)
    thread.start()
    while thread.is_alive():
        DeltaTable(str(path)).optimize.compact()
    thread.join()
    assert not failures
    expected = {number for number in range(200) if number % 10 != 3} | {1000 + at for at in range(0, 200, 10)}
    found = [row["id"] for row in rows_of(DeltaTable(str(path)))]
    assert (len(found), set(found)) == (len(expected), expected)
