"""FSCK finds files that do not match the log, and repairs the log. Protocol: "Add File and Remove File"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import (
    CommitProperties,
    CorruptDataError,
    DeltaTable,
    InvalidArgumentError,
    MissingFileError,
    UnavailableError,
    write_deltalake,
)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Creates a table with three files in two partitions."""
    path = str(tmp_path / "t")
    for number in range(3):
        rows = pa.table({"id": [2 * number, 2 * number + 1], "p": ["a b" if number < 2 else None] * 2})
        write_deltalake(path, rows, partition_by=["p"], mode="append")
    return DeltaTable(path)


def files(table: DeltaTable) -> list[Path]:
    """Returns the data files, oldest first."""
    listed = pa.table(table.files()).to_pylist()
    listed.sort(key=lambda file: file["stats"]["minValues"]["id"])
    return [Path(table.table_uri.removeprefix("file://")) / file["path"] for file in listed]


def ids(table: DeltaTable) -> list[int]:
    return sorted(pa.table(table.to_arrow(columns=["id"]))["id"].to_pylist())


def problems(table: DeltaTable, level: Any = "footers") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(table.check(level)).to_pylist()
    return found


def test_a_check_reports_problems_as_a_table(table: DeltaTable) -> None:
    assert problems(table, "rows") == []
    first, second, third = files(table)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-9])
    (third.parent / "orphan.parquet").write_bytes(b"x")
    found = problems(table)
    assert [row["problem"] for row in found] == [
        "missing file",
        "wrong size",
        "damaged file",
        "unreferenced file",
    ] or [row["problem"] for row in found] == [
        "wrong size",
        "damaged file",
        "missing file",
        "unreferenced file",
    ]
    [missing] = [row for row in found if row["problem"] == "missing file"]
    assert missing["path"].endswith(first.name)
    assert missing["num_rows"] == 2
    assert dict(missing["partition_values"]) == {"p": "a b"}
    assert found[-1]["partition_values"] is None
    assert found[-1]["size"] == 1
    assert [row["problem"] for row in problems(table, "files")].count("damaged file") == 0
    assert pa.schema(pa.table(table.check()).schema).names == [
        "path",
        "problem",
        "detail",
        "partition_values",
        "size",
        "modification_time",
        "num_rows",
    ]


def test_a_repair_removes_missing_files_and_deltalake_reads_the_rest(table: DeltaTable) -> None:
    first, second, _ = files(table)
    first.unlink()
    planned = table.repair(dry_run=True)
    assert (planned["dry_run"], len(planned["files_removed"]), table.version()) == (True, 1, 2)
    done = table.repair(commit_properties=CommitProperties(custom_metadata={"why": "lost"}))
    assert {**done, "dry_run": True} == planned
    assert done["files"] == [
        {
            "dataFilePath": done["files_removed"][0],
            "dataFileMissing": True,
            "dataFileDamaged": False,
            "deletionVectorPath": None,
            "deletionVectorFileMissing": False,
        }
    ]
    assert (table.version(), ids(table)) == (3, [2, 3, 4, 5])
    [commit] = table.history(1)
    assert (commit["operation"], commit["why"]) == ("FSCK REPAIR TABLE", "lost")
    assert commit["operationMetrics"]["numRemovedFiles"] == str(done["numRemovedFiles"]) == "1"
    read = deltalake.DeltaTable(table.table_uri).to_pyarrow_table(columns=["id"])
    assert sorted(read["id"].to_pylist()) == [2, 3, 4, 5]
    # Afterwards the repair function of `deltalake` finds nothing to do.
    assert deltalake.DeltaTable(table.table_uri).repair(dry_run=True)["files_removed"] == []
    assert table.repair()["files_removed"] == []
    assert table.version() == 3

    second.write_bytes(b"PAR1")
    assert table.repair()["files_removed"] == []
    assert len(table.repair(remove_damaged=True)["files_removed"]) == 1
    assert ids(table) == [4, 5]


def test_deltalake_removes_the_same_files(table: DeltaTable, tmp_path: Path) -> None:
    for file in files(table)[1:]:
        file.unlink()
    ours = table.repair(dry_run=True)["files_removed"]
    theirs = deltalake.DeltaTable(table.table_uri).repair()["files_removed"]
    assert len(ours) == len(theirs) == 2
    table.update_incremental()
    assert problems(table) == []
    assert ids(table) == [0, 1]


def test_rows_that_were_deleted_do_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": range(10)}), configuration={"delta.enableDeletionVectors": "true"})
    write_deltalake(path, pa.table({"id": range(10, 12)}), mode="append")
    table = DeltaTable(path)
    table.delete("id < 3")
    [vector] = path.glob("*.bin")
    content = vector.read_bytes()
    vector.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert [row["problem"] for row in problems(table)] == ["damaged vector"]
    assert table.repair()["files_removed"] == []
    with pytest.raises(CorruptDataError, match="the deletion vectors of 1 of its files cannot be read"):
        table.repair(remove_damaged=True)
    vector.unlink()
    with pytest.raises(MissingFileError, match="drop_files_without_vectors"):
        table.repair()
    done = table.repair(drop_files_without_vectors=True)
    assert done["numFilesWithoutVectors"] == 1
    assert done["files"][0]["deletionVectorFileMissing"]
    assert ids(table) == [10, 11]


def test_what_cannot_be_checked_or_repaired(table: DeltaTable) -> None:
    with pytest.raises(
        InvalidArgumentError, match="level cannot be 'all'; pass 'files', 'footers' or 'rows'"
    ):
        table.check("all")  # type: ignore[arg-type]
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    files(table)[0].unlink()
    with pytest.raises(InvalidArgumentError, match="append-only"):
        table.repair()
    assert [row["problem"] for row in problems(table)] == ["missing file"]


def test_files_of_a_directory_that_is_not_mounted_are_not_missing(table: DeltaTable, tmp_path: Path) -> None:
    """The source of a shallow clone is not available, for example because it is not mounted. Its files may still
    exist, so they do not count as missing.
    """
    roots = table.clone(tmp_path / "clone", shallow=True).allowed_roots
    clone = DeltaTable(tmp_path / "clone", allowed_roots=roots)
    source = tmp_path / "t"
    source.rename(tmp_path / "elsewhere")
    for dry_run in (True, False):
        with pytest.raises(UnavailableError, match="which has files outside of the table, does not exist"):
            clone.repair(dry_run)
    (tmp_path / "elsewhere").rename(source)
    assert problems(clone) == []
    files(table)[0].unlink()
    assert [row["problem"] for row in problems(clone)] == ["missing file"]
    assert len(clone.repair()["files_removed"]) == 1
