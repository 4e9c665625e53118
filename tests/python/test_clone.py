"""Clones are new tables that are made from a version of another table. Protocol: "Add File and Remove File"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import (
    CommitProperties,
    DeltaTable,
    InvalidArgumentError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    write_deltalake,
)


def rows_of(table: Any) -> list[dict[str, Any]]:
    return sorted(pa.table(table).to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def source(tmp_path: Path) -> DeltaTable:
    """Creates a partitioned table whose newest version has deletion vectors."""
    path = str(tmp_path / "source")
    rows = pa.table({"id": range(10), "part": ["a b", "c/d"] * 5})
    write_deltalake(path, rows, partition_by=["part"])
    table = DeltaTable(path)
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id in (2, 3)")
    return table


def test_a_deep_clone_is_a_table_of_its_own(source: DeltaTable, tmp_path: Path) -> None:
    target = tmp_path / "clone"
    properties = CommitProperties(custom_metadata={"userMetadata": "mine"})
    done = source.clone(target, configuration={"mine": "x"}, commit_properties=properties)
    assert (done.version, done.allowed_roots, done.metrics["numCopiedFiles"]) == (0, [], 2)
    clone = DeltaTable(target)
    assert rows_of(clone.to_arrow()) == rows_of(source.to_arrow())
    assert clone.metadata().configuration == {**source.metadata().configuration, "mine": "x"}
    [commit] = clone.history()
    assert (commit["operation"], commit["userMetadata"]) == ("CLONE", "mine")
    assert commit["operationParameters"] == {
        "source": f"delta.`{source.table_uri}`",
        "sourceVersion": 2,
        "isShallow": False,
    }
    assert commit["operationMetrics"] == {name: str(value) for name, value in done.metrics.items()}
    # The clone does not need the source, and its files are not copied again.
    write_deltalake(source, pa.table({"id": [20], "part": ["e"]}), mode="append")
    source.update_incremental()
    assert source.clone(target, mode="overwrite", configuration={"mine": "x"}).metrics["numCopiedFiles"] == 1
    assert source.clone(target, mode="overwrite", configuration={"mine": "x"}).version is None
    assert source.clone(target, mode="ignore").version is None
    clone.update_incremental()
    assert rows_of(clone.to_arrow()) == rows_of(source.to_arrow())
    clone.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert rows_of(clone.to_arrow()) == rows_of(source.to_arrow())


def test_an_older_version_is_read_by_deltalake(source: DeltaTable, tmp_path: Path) -> None:
    """An older version is cloned, because `deltalake` cannot read the deletion vectors of the newest one."""
    DeltaTable(source.table_uri, version=0).clone(tmp_path / "clone")
    found = deltalake.DeltaTable(str(tmp_path / "clone"))
    assert rows_of(found.to_pyarrow_table()) == rows_of(DeltaTable(source.table_uri, version=0).to_arrow())


def test_a_shallow_clone_refers_to_its_source(source: DeltaTable, tmp_path: Path) -> None:
    target = tmp_path / "clone"
    done = source.clone(target, shallow=True)
    assert (done.metrics["numCopiedFiles"], done.allowed_roots) == (0, [source.table_uri])
    assert [path.name for path in target.iterdir()] == ["_delta_log"]
    with pytest.raises(UnsupportedFeatureError, match="allowed_roots"):
        pa.table(DeltaTable(target).to_arrow())
    clone = DeltaTable(target, allowed_roots=done.allowed_roots)
    expected = rows_of(source.to_arrow())
    assert rows_of(clone.to_arrow()) == expected
    clone.delete("id > 5")
    write_deltalake(clone, pa.table({"id": [30], "part": ["a b"]}), mode="append")
    clone.update_incremental()
    clone.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert [row["id"] for row in rows_of(clone.to_arrow())] == [0, 1, 4, 5, 30]
    assert rows_of(source.to_arrow()) == expected


def test_what_cannot_be_cloned(source: DeltaTable, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "other", pa.table({"id": [1]}))
    for target, arguments, error, text in [
        (source.table_uri, {"mode": "overwrite"}, InvalidArgumentError, "cannot be cloned onto itself"),
        (
            Path(source.table_uri.removeprefix("file://")) / "in",
            {},
            InvalidArgumentError,
            "inside of each other",
        ),
        (tmp_path / "other", {}, TableAlreadyExistsError, "there is already a table"),
        (tmp_path / "x", {"mode": "append"}, InvalidArgumentError, "mode cannot be 'append'"),
        (tmp_path / "x", {"configuration": {"delta.none": "1"}}, InvalidArgumentError, "delta.none"),
        (7, {}, InvalidArgumentError, "a path or a URL"),
    ]:
        with pytest.raises(error, match=text):
            source.clone(target, **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "x").exists()
    planned = source.clone(tmp_path / "x", dry_run=True)
    assert (planned.version, planned.metrics["numCopiedFiles"], (tmp_path / "x").exists()) == (None, 2, False)


def test_copies_of_copies_keep_short_names(source: DeltaTable, tmp_path: Path) -> None:
    table = source
    for number in range(9):
        table.clone(tmp_path / str(number))
        table = DeltaTable(tmp_path / str(number))
    assert rows_of(table.to_arrow()) == rows_of(source.to_arrow())


def test_a_clone_of_files_that_its_source_may_not_read_is_refused(source: DeltaTable, tmp_path: Path) -> None:
    """A table object that may not read the table's files cannot be cloned. Otherwise, the returned table could not be
    read.
    """
    first = source.clone(tmp_path / "first", shallow=True)
    unreadable = DeltaTable(tmp_path / "first")
    for shallow in (True, False):
        with pytest.raises(UnsupportedFeatureError, match="outside the table"):
            unreadable.clone(tmp_path / "second", shallow=shallow)
    readable = DeltaTable(tmp_path / "first", allowed_roots=first.allowed_roots)
    second = readable.clone(tmp_path / "second", shallow=True)
    found = DeltaTable(tmp_path / "second", allowed_roots=second.allowed_roots)
    assert rows_of(found.to_arrow()) == rows_of(source.to_arrow())
