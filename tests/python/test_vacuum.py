"""Tests which files VACUUM lists, deletes and keeps (PROTOCOL, "VACUUM Protocol Check"). The core's tests cover the
rules in detail.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, VacuumResult, VersionNotFoundError, write_deltalake
from deltalog.errors import InvalidArgumentError, SchemaMismatchError
from tests.python.place import actions

DAY = 24 * 3600
ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "p": ["a b", "a b", "c", "c"]})


def aged(path: Path, days: float = 30) -> None:
    """Changes the times of all data files, so that they are this old."""
    written = time.time() - days * DAY
    for file in path.rglob("*"):
        if "_delta_log" not in file.parts:
            os.utime(file, (written, written))


def files(path: Path) -> set[str]:
    found = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return {str(file) for file in found if "_delta_log" not in file.parts}


def removed_files(path: Path) -> set[str]:
    return {unquote(line["remove"]["path"]) for line in actions(path, 1) if "remove" in line}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Creates a table whose first files were removed, with an additional file that no version refers to."""
    write_deltalake(tmp_path, ROWS, partition_by=["p"])
    write_deltalake(tmp_path, ROWS, mode="overwrite")
    (tmp_path / "p=c" / "orphan.parquet").write_bytes(b"12345")
    aged(tmp_path)
    return tmp_path


def test_a_dry_run_is_the_default(path: Path) -> None:
    before = files(path)
    assert DeltaTable(path).vacuum() == ["p=c/orphan.parquet"]
    removed = removed_files(path)
    table = DeltaTable(path)
    found = table.vacuum(0, enforce_retention_duration=False)
    assert set(found) == {"p=c/orphan.parquet", *removed}
    assert (files(path), table.version()) == (before, 1)


def test_what_is_found_is_deleted(path: Path) -> None:
    table = DeltaTable(path)
    before = files(path)
    properties = CommitProperties(custom_metadata={"why": "test"})
    found = table.vacuum(
        timedelta(0), dry_run=False, enforce_retention_duration=False, commit_properties=properties
    )
    assert len(found) == 3
    assert files(path) == before - set(found)
    assert table.version() == 3
    end, start = table.history(2)
    assert (start["operation"], start["operationMetrics"]["numFilesToDelete"], start["why"]) == (
        "VACUUM START",
        "3",
        "test",
    )
    assert start["operationParameters"] == {
        "retentionCheckEnabled": False,
        "defaultRetentionMillis": 7 * DAY * 1000,
        "specifiedRetentionMillis": 0,
    }
    assert (end["operation"], end["operationParameters"]) == ("VACUUM END", {"status": "COMPLETED"})
    assert end["operationMetrics"] == {"numDeletedFiles": "3", "numVacuumedDirectories": "3"}
    assert pa.table(table.to_arrow()).sort_by("id") == ROWS
    assert deltalake.DeltaTable(path).to_pyarrow_table().sort_by("id").column("id") == ROWS.column("id")


def test_a_plan_has_sizes_and_reasons_and_can_be_carried_out(path: Path) -> None:
    table = DeltaTable(path)
    plan = table.vacuum_plan(0, enforce_retention_duration=False)
    rows = pa.table(plan.files()).to_pylist()
    assert {(row["path"], row["size"], row["reason"]) for row in rows if row["size"] == 5} == {
        ("p=c/orphan.parquet", 5, "unreferenced")
    }
    assert [row["reason"] for row in rows].count("removed") == 2
    assert all(row["modification_time"] < datetime.now(timezone.utc) - timedelta(days=29) for row in rows)
    assert pa.table(plan.files()).num_rows == plan.num_files == 3
    assert plan.size_in_bytes == sum(row["size"] for row in rows)
    assert plan.version == 1
    assert abs(plan.cutoff - datetime.now(timezone.utc)) < timedelta(minutes=5)
    assert repr(plan).startswith("VacuumPlan(num_files=3, size_in_bytes=")
    assert plan.delete() == VacuumResult(3, plan.size_in_bytes, 0, 3)
    assert table.version() == 3
    assert pa.table(table.vacuum_plan(0, False).files()).num_rows == 0


def test_a_file_that_was_restored_since_the_plan_stays(tmp_path: Path) -> None:
    """A file that was restored after the plan was made is kept, even if it was removed again since and a compaction of
    the log no longer mentions it.
    """
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="overwrite")
    plan = DeltaTable(tmp_path).vacuum_plan(0, False)
    assert len(plan.paths()) == 1
    DeltaTable(tmp_path).restore(0)
    DeltaTable(tmp_path).restore(1)
    DeltaTable(tmp_path).compact_logs(2, 3)
    assert plan.delete().num_files == 0
    assert pa.table(DeltaTable(tmp_path, version=2).to_arrow())["id"].to_pylist() == [1]


def test_a_short_retention_is_refused(path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"retention of 1 hour is shorter.*168 hours") as caught:
        DeltaTable(path).vacuum(1)
    assert "enforce_retention_duration=False" in str(caught.value)
    for wrong in (-1, float("nan"), True, "7 days", timedelta(-1)):
        with pytest.raises(InvalidArgumentError, match="retention_hours"):
            DeltaTable(path).vacuum(wrong)  # type: ignore[arg-type]


def test_young_files_and_retained_versions_stay(path: Path) -> None:
    """Young files are kept, because they may belong to writes that are not committed yet, and so are the files of
    retained versions.
    """
    (path / "young.parquet").touch()
    (path / "_hidden").mkdir()
    (path / "_hidden" / "old.parquet").touch()
    os.utime(path / "_hidden" / "old.parquet", (0, 0))
    table = DeltaTable(path)
    before = files(path)
    assert table.vacuum(dry_run=False) == ["p=c/orphan.parquet"]
    assert files(path) == before - {"p=c/orphan.parquet"}
    assert pa.table(DeltaTable(path, version=0).to_arrow()).num_rows == 4
    assert table.vacuum(0, True, False, keep_versions=[0]) == ["young.parquet"]


def test_directories_that_have_been_empty_for_long_are_removed(path: Path) -> None:
    for name in ("p=old", "p=new"):
        (path / name / "nested").mkdir(parents=True)
    os.utime(path / "p=old" / "nested", (0, 0))
    os.utime(path / "p=old", (0, 0))
    assert DeltaTable(path).vacuum_plan().delete().num_directories == 1
    # Removing the directory has changed the time of its parent directory, which is therefore not old enough.
    assert (path / "p=old").exists()
    assert (path / "p=new" / "nested").exists()


def test_the_log_alone(path: Path) -> None:
    table = DeltaTable(path)
    removed = removed_files(path)
    assert set(table.vacuum(0, False, False, full=False)) == removed
    assert files(path) >= {"p=c/orphan.parquet"}
    assert table.vacuum(0, False, False, full=False) == []
    table.create_checkpoint()
    for version in range(table.version()):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    (path / "_delta_log" / "_last_vacuum_info").unlink()
    with pytest.raises(VersionNotFoundError, match="no VACUUM has recorded"):
        DeltaTable(path).vacuum(0, True, False, full=False)


def test_an_inventory(path: Path) -> None:
    table = DeltaTable(path)
    old = datetime(2020, 1, 1, tzinfo=timezone.utc)
    inventory = pa.table(
        {
            "path": [str(path / file) for file in sorted(files(path))],
            "length": [1] * len(files(path)),
            "isDir": [False] * len(files(path)),
            "modificationTime": pa.array([old] * len(files(path)), pa.timestamp("us", "UTC")),
        }
    )
    assert table.vacuum(inventory=inventory) == ["p=c/orphan.parquet"]
    with pytest.raises(SchemaMismatchError, match="no column 'isDir'"):
        table.vacuum(inventory=inventory.drop_columns(["isDir"]))
    with pytest.raises(InvalidArgumentError, match="full=True"):
        table.vacuum(inventory=inventory, full=False)
    elsewhere = inventory.set_column(0, "path", pa.array(["/elsewhere/x"] * len(inventory)))
    with pytest.raises(InvalidArgumentError, match="below the table's root"):
        table.vacuum(inventory=elsewhere)
