"""REORG ... APPLY (PURGE) removes deleted rows and dropped columns from files. Protocol: "Column Mapping"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, InvalidArgumentError, write_deltalake

MAPPED = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}


def rows(table: DeltaTable) -> list[dict[str, Any]]:
    return sorted(pa.table(table.to_arrow()).to_pylist(), key=lambda row: row["id"])


def columns(table: DeltaTable) -> list[int]:
    """Returns the number of leaf columns in each data file."""
    paths = [uri.removeprefix("file://") for uri in table.file_uris()]
    return sorted(pq.read_metadata(path).num_columns for path in paths)


@pytest.fixture(params=["name", "id"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaTable:
    """Creates a table with three files: one with a deletion vector, one without, and one that was written after
    columns were dropped.
    """
    path = tmp_path / "t"
    nested = [{"x": number, "y": {"z": number}} for number in range(4)]
    data = pa.table({"id": range(4), "s": nested, "old": ["x"] * 4, "p": ["a"] * 4})
    write_deltalake(
        path, data, partition_by=["p"], configuration={**MAPPED, "delta.columnMapping.mode": request.param}
    )
    write_deltalake(path, data.set_column(0, "id", [range(4, 8)]), mode="append")
    table = DeltaTable(path)
    table.delete("id = 1")
    table.alter.drop_columns(["old", "s.y"])
    write_deltalake(
        path,
        pa.table({"id": [9], "s": [{"x": 9}], "p": ["b"]}),
        mode="append",
    )
    table.update_incremental()
    return table


def test_a_purge_leaves_nothing_of_deleted_rows_and_dropped_columns(table: DeltaTable) -> None:
    before = rows(table)
    assert columns(table) == [2, 4, 4]
    version = table.version()
    planned = table.optimize.purge(dry_run=True)
    assert (planned["numFilesRemoved"], table.version()) == (2, version)
    done = table.optimize.purge()
    assert (done["numFilesRemoved"], done["numFilesAdded"], done["totalFilesSkipped"]) == (2, 1, 1)
    assert done["deletionVectorStats"]["numDeletionVectorsRemoved"] == 1
    assert rows(table) == before
    assert columns(table) == [2, 2]
    [commit] = table.history(1)
    assert (commit["operation"], commit["operationParameters"]) == (
        "REORG",
        {"predicate": "[]", "applyPurge": True},
    )
    assert pa.table(table.files())["deletion_vector"].null_count == 2
    # A second purge has nothing to do.
    again = table.optimize.purge()
    assert (again["numFilesRemoved"], table.version()) == (0, version + 1)


def test_partitions_are_chosen(table: DeltaTable) -> None:
    assert table.optimize.purge("p = 'b'")["numFilesRemoved"] == 0
    assert table.optimize.purge("p = 'a'")["numFilesRemoved"] == 2
    with pytest.raises(InvalidArgumentError, match="columns that are not partition columns"):
        table.optimize.purge("id = 1")


def test_ids_of_rows_stay(tmp_path: Path) -> None:
    """ "Row Tracking": a purge keeps the hidden columns with row ids, which are not dropped columns."""
    path = tmp_path / "t"
    properties = {**MAPPED, "delta.enableRowTracking": "true"}
    write_deltalake(path, pa.table({"id": range(6), "old": range(6)}), configuration=properties)
    table = DeltaTable(path)
    table.delete("id in (1, 4)")
    table.alter.drop_columns("old")

    def tracked() -> list[Any]:
        return sorted(pa.table(table.to_arrow(row_ids=True)).to_pylist(), key=lambda row: row["id"])

    before = tracked()
    assert table.optimize.purge()["numFilesRemoved"] == 1
    assert tracked() == before
    assert table.optimize.purge()["numFilesRemoved"] == 0
