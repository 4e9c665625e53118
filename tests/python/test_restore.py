"""RESTORE makes an earlier version the newest one again. Protocol: "Add File and Remove File"."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import (
    CommitConflictError,
    CommitProperties,
    DeltaTable,
    Field,
    InvalidArgumentError,
    MissingFileError,
    VersionNotFoundError,
    write_deltalake,
)
from tests.python.interfering import overtaken


def rows_of(table: DeltaTable) -> list[dict[str, Any]]:
    return sorted(pa.table(table.to_arrow()).to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def history(tmp_path: Path) -> DeltaTable:
    """Creates a table with a history: rows are written, some are deleted, a column and more rows are added, and all is
    overwritten.
    """
    path = str(tmp_path / "t")
    parts = pa.table({"id": range(10), "part": ["a", "b"] * 5})
    write_deltalake(path, parts, partition_by=["part"], configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(path)
    table.delete("id in (2, 3, 4)")
    table.alter.add_columns(Field("more", "string"))
    write_deltalake(path, pa.table({"id": [20], "part": ["c"], "more": ["x"]}), mode="append")
    write_deltalake(path, pa.table({"id": [99], "part": ["z"], "more": [None]}), mode="overwrite")
    table.update_incremental()
    return table


def test_each_version_can_be_restored_and_read_by_others(history: DeltaTable) -> None:
    versions = [rows_of(DeltaTable(history.table_uri, version=version)) for version in range(5)]
    for version in (0, 3, 1, 4, 2):
        metrics = history.restore(version)
        assert rows_of(history) == versions[version]
        assert metrics["numOfFilesAfterRestore"] == len(history.file_uris())
        assert metrics["tableSizeAfterRestore"] == sum(pa.table(history.files())["size"].to_pylist())
        assert history.history(1)[0]["operationParameters"] == {"version": version, "timestamp": None}
    assert history.version() == 9


def test_deltalake_reads_a_restored_version(tmp_path: Path) -> None:
    """The restored version has no deletion vectors, which `deltalake` cannot read."""
    path = str(tmp_path / "t")
    for mode, ids in (("append", [1, 2]), ("append", [3]), ("overwrite", [4])):
        write_deltalake(path, pa.table({"id": ids}), mode=mode)  # type: ignore[call-overload]
    DeltaTable(path).restore(1)
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("select id from t")
    assert sorted(pa.table(found)["id"].to_pylist()) == [1, 2, 3]
    # deltalog also reads a version that `deltalake` has restored.
    deltalake.DeltaTable(path).restore(2)
    assert rows_of(DeltaTable(path)) == [{"id": 4}]


def test_a_time(history: DeltaTable) -> None:
    time = datetime.fromtimestamp(next(history.commits(1)).timestamp / 1000, timezone.utc)
    history.restore(time)
    assert rows_of(history) == rows_of(DeltaTable(history.table_uri, timestamp=time))
    assert history.history(1)[0]["operationParameters"]["timestamp"] == str(time)
    with pytest.raises(VersionNotFoundError):
        history.restore("1999-01-01")


def test_a_dry_run_and_a_restore_without_effect(history: DeltaTable) -> None:
    planned = history.restore(0, dry_run=True)
    assert (planned["numRestoredFiles"], history.version()) == (2, 4)
    properties = CommitProperties(custom_metadata={"why": "a mistake"})
    assert history.restore(0, commit_properties=properties) == planned
    assert (history.history(1)[0]["operation"], history.history(1)[0]["why"]) == ("RESTORE", "a mistake")
    assert history.restore(0)["numRestoredFiles"] == 0
    assert history.version() == 5


def test_restoring_the_newest_version_changes_nothing(history: DeltaTable) -> None:
    metrics = history.restore(4)
    assert (metrics["numRestoredFiles"], metrics["numRemovedFiles"], history.version()) == (0, 0, 4)


def test_what_cannot_be_restored(history: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(VersionNotFoundError):
        history.restore(7)
    other = DeltaTable(history.table_uri)
    other.restore(2)
    with pytest.raises(CommitConflictError):
        overtaken(history).restore(0)
    other.alter.set_table_properties({"delta.appendOnly": "true"})
    version = other.version()
    write_deltalake(other, pa.table({"id": [1], "part": ["a"], "more": [None]}), mode="append")
    other.update_incremental()
    with pytest.raises(InvalidArgumentError, match="append"):
        other.restore(version)


def test_missing_files(history: DeltaTable, tmp_path: Path) -> None:
    gone = DeltaTable(history.table_uri, version=0).file_uris("part = 'a'")
    for uri in gone:
        Path(uri.removeprefix("file://")).unlink()
    with pytest.raises(MissingFileError, match="1 of its files no longer exist: part=a/") as missing:
        history.restore(3)
    assert missing.value.version == 3
    assert history.restore(3, ignore_missing_files=True)["numMissingFiles"] == 1
    assert {row["part"] for row in rows_of(history)} == {"b", "c"}
