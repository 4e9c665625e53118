"""VACUUM deletes the same files as the JVM connector and `deltalake` would, and both can read the table afterwards."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm
from tests.python.test_vacuum import aged, files

ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "_p": [f"{number % 3} x" for number in range(12)],
        "q": pa.array([None if number % 2 else number for number in range(12)], pa.int32()),
    }
)
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def _history(path: Path, properties: dict[str, str]) -> None:
    """Creates a table with partitions and with files that belong to no version. One partition has a name like a hidden
    directory.
    """
    write_deltalake(path, ROWS, partition_by=["_p", "q"], configuration=properties)
    table = DeltaTable(path)
    table.delete("id = 3")
    table.update({"id": "id + 100"}, predicate="id < 3")
    write_deltalake(path, ROWS.slice(6), mode="overwrite", predicate="id >= 6")
    DeltaTable(path).delete("q = 8")
    for name in (
        "orphan.parquet",
        "_p=0%20x/orphan.parquet",
        "deletion_vector_of_nothing.bin",
        "_hidden/x.parquet",
        "new dir/a%25b.parquet",
        "_change_data/cdc-orphan.parquet",
        ".hidden",
    ):
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    aged(path)
    # Files that the first versions removed were removed long ago, so they have expired.
    for version in range(1, 4):
        commit = path / "_delta_log" / f"{version:020}.json"
        text = re.sub(
            r'"deletionTimestamp":(\d+)',
            lambda found: f'"deletionTimestamp":{int(found[1]) - 9 * 24 * 3_600_000}',
            commit.read_text(),
        )
        commit.write_text(text)
    (path / "_p=1%20x" / "young.parquet").parent.mkdir(exist_ok=True)
    (path / "_p=1%20x" / "young.parquet").touch()


def _left(path: Path, name: str, vacuum: Callable[[Path], object]) -> set[str]:
    """Runs VACUUM on a copy of the table, and returns the remaining files."""
    copy = path.with_name(name)
    shutil.copytree(path, copy)
    vacuum(copy)
    return {file for file in files(copy) if not file.endswith(".crc")}


@pytest.mark.parametrize("retention", [None, 0])
def test_the_same_files_as_the_jvm_connector_deletes(jvm: Jvm, tmp_path: Path, retention: int | None) -> None:
    path = tmp_path / "t"
    _history(path, {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"})
    before = files(path)
    expected = rows(pa.table(DeltaTable(path).to_arrow()))

    def of_jvm(copy: Path) -> None:
        hours = "" if retention is None else f" RETAIN {retention} HOURS"
        jvm.run(f"SET {CHECK} = false")
        try:
            jvm.run(f"VACUUM delta.`{copy}`{hours}")
        finally:
            jvm.run(f"SET {CHECK} = true")

    def ours(copy: Path) -> None:
        DeltaTable(copy).vacuum(retention, dry_run=False, enforce_retention_duration=False)

    left = _left(path, "jvm", of_jvm)
    assert _left(path, "ours", ours) == left
    assert 0 < len(left) < len(before)
    if retention is None:
        assert "_p=1%20x/young.parquet" in left
        # The files that the last DELETE removed are still retained.
        assert rows(pa.table(DeltaTable(tmp_path / "ours", version=3).to_arrow()))
    [(found, _)] = jvm.versions(tmp_path / "ours", [6])
    assert rows(found) == expected
    # After one engine's VACUUM, the other one finds nothing more to delete.
    assert DeltaTable(tmp_path / "jvm").vacuum(retention, True, False) == []

    jvm_start, our_start = (
        next(entry for entry in DeltaTable(tmp_path / name).history() if entry["operation"] == "VACUUM START")
        for name in ("jvm", "ours")
    )
    assert jvm_start["operationParameters"] == our_start["operationParameters"]
    assert jvm_start["operationMetrics"].keys() == our_start["operationMetrics"].keys()
    ends = [DeltaTable(tmp_path / name).history(1)[0] for name in ("jvm", "ours")]
    assert ends[0]["operationParameters"] == ends[1]["operationParameters"]
    assert ends[0]["operationMetrics"].keys() == ends[1]["operationMetrics"].keys()


def test_lite_continues_where_the_jvm_connector_has_ended(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, ROWS)
    write_deltalake(path, ROWS, mode="overwrite")
    aged(path)
    jvm.run(f"SET {CHECK} = false")
    try:
        jvm.run(f"VACUUM delta.`{path}` LITE RETAIN 0 HOURS")
        assert len(files(path)) == 1
        write_deltalake(path, ROWS, mode="overwrite")
        # Without the connector's record of its last VACUUM, deltalog would need the whole log, from version 0 on.
        DeltaTable(path).create_checkpoint()
        (path / "_delta_log" / f"{0:020}.json").unlink()
        found = DeltaTable(path).vacuum(0, False, False, full=False)
        assert len(found) == 1
        assert len(files(path)) == 1
        write_deltalake(path, ROWS, mode="overwrite")
        jvm.run(f"VACUUM delta.`{path}` LITE RETAIN 0 HOURS")
    finally:
        jvm.run(f"SET {CHECK} = true")
    assert len({file for file in files(path) if not file.endswith(".crc")}) == 1


@pytest.mark.parametrize("retention", [None, 0])
def test_the_same_files_as_deltalake_deletes(tmp_path: Path, retention: int | None) -> None:
    path = tmp_path / "t"
    _history(path, {"delta.enableChangeDataFeed": "true"})
    expected = rows(pa.table(DeltaTable(path).to_arrow()))

    def theirs(copy: Path) -> None:
        deltalake.DeltaTable(copy).vacuum(retention, False, False, full=True)

    def ours(copy: Path) -> None:
        DeltaTable(copy).vacuum(retention, False, False)

    assert _left(path, "ours", ours) == _left(path, "theirs", theirs)
    assert rows(deltalake.DeltaTable(tmp_path / "ours").to_pyarrow_table()) == expected
