"""Manifests, which engines read through Hive's `SymlinkTextInputFormat`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import (
    CommitConflictError,
    DeltaTable,
    InvalidArgumentError,
    UnsupportedFeatureError,
    write_deltalake,
)
from tests.python.interfering import overtaken

ENABLED = "delta.compatibility.symlinkFormatManifest.enabled"
ROWS = pa.table({"id": range(4), "p": ["a/b", "a/b", "c d", None]})


def manifests(path: Path) -> dict[str, list[str]]:
    root = path / "_symlink_format_manifest"
    return {str(file.relative_to(root)): file.read_text().splitlines() for file in root.rglob("*manifest")}


def ids(path: Path) -> list[int]:
    """Reads the table like an engine that only uses manifests."""
    files = [file.removeprefix("file:") for lines in manifests(path).values() for file in lines]
    tables = [pq.read_table(file, partitioning=None) for file in files]
    return sorted(number for table in tables for number in table["id"].to_pylist())


def test_manifests_name_the_files_of_the_newest_version(tmp_path: Path) -> None:
    path = tmp_path / "a table"
    write_deltalake(path, ROWS, partition_by=["p"])
    old = DeltaTable(path)
    write_deltalake(path, ROWS, mode="append")
    assert old.generate() == 1
    assert set(manifests(path)) == {
        "p=a%2Fb/manifest",
        "p=c d/manifest",
        "p=__HIVE_DEFAULT_PARTITION__/manifest",
    }
    assert ids(path) == [0, 0, 1, 1, 2, 2, 3, 3]
    DeltaTable(path).delete("p = 'c d'")
    assert DeltaTable(path).generate("symlink_format_manifest") == 2
    assert ids(path) == [0, 0, 1, 1, 3, 3]
    # A VACUUM keeps the manifests.
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert ids(path) == [0, 0, 1, 1, 3, 3]


def test_manifests_follow_each_commit(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, ROWS, partition_by=["p"], configuration={ENABLED: "true"})
    assert ids(path) == [0, 1, 2, 3]
    table = DeltaTable(path)
    table.update({"id": "id + 10"}, predicate="id = 1")
    assert ids(path) == [0, 2, 3, 11]
    write_deltalake(path, ROWS, mode="append")
    table.update_incremental()
    table.optimize.compact()
    assert [len(lines) for lines in manifests(path).values()] == [1, 1, 1]
    assert ids(path) == sorted(pa.table(table.to_arrow())["id"].to_pylist())
    table.restore(0)
    assert ids(path) == [0, 1, 2, 3]
    table.delete()
    assert manifests(path) == {}


def test_manifests_that_would_lie_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    vectors = {"delta.enableDeletionVectors": "true"}
    with pytest.raises(InvalidArgumentError, match=r"cannot have manifests .* and deletion vectors"):
        write_deltalake(path, ROWS, configuration={**vectors, ENABLED: "true"})
    write_deltalake(path, ROWS, configuration=vectors)
    table = DeltaTable(path)
    with pytest.raises(InvalidArgumentError, match="set one of the two properties to false"):
        table.alter.set_table_properties({ENABLED: "true"})
    table.delete("id = 1")
    with pytest.raises(UnsupportedFeatureError, match=r"optimize\.purge"):
        table.generate()
    table.optimize.purge()
    assert table.generate() == 2
    assert ids(path) == [0, 2, 3]
    with pytest.raises(InvalidArgumentError, match=r"mode cannot be 'presto'.*the only mode"):
        table.generate("presto")


def test_concurrently_added_vectors_are_a_conflict(tmp_path: Path) -> None:
    path, vectors = tmp_path / "t", "delta.enableDeletionVectors"
    write_deltalake(path, ROWS, configuration={vectors: "true"})
    old = DeltaTable(path)
    DeltaTable(path).delete("id = 1")
    with pytest.raises(CommitConflictError, match="deletion vectors, which manifests cannot express"):
        overtaken(old).alter.set_table_properties({vectors: "false", ENABLED: "true"})
    assert DeltaTable(path).version() == 1


def test_a_shallow_clone_keeps_manifests_of_files_elsewhere(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    table = DeltaTable(tmp_path / "t")
    cloned = table.clone(tmp_path / "clone", shallow=True, configuration={ENABLED: "true"})
    assert ids(tmp_path / "clone") == [0, 1, 2, 3]
    clone = DeltaTable(tmp_path / "clone", allowed_roots=cloned.allowed_roots)
    clone.delete("id = 2")
    assert ids(tmp_path / "clone") == [0, 1, 3]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("s3://elsewhere/x.parquet", "outside the table"),
        ("/etc/x.parquet", "outside the table"),
        ("a%0As3://elsewhere/x.parquet", "control characters"),
    ],
)
def test_a_manifest_sends_no_engine_outside_of_the_table(tmp_path: Path, path: str, words: str) -> None:
    """Manifests have no paths outside of the table, because engines would read them with their own credentials."""
    root = tmp_path / "t"
    write_deltalake(root, ROWS, configuration={ENABLED: "true"})
    before = manifests(root)
    log = root / "_delta_log"
    add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    (log / f"{1:020}.json").write_text(json.dumps({"add": add}) + "\n")
    with pytest.raises(UnsupportedFeatureError, match=words):
        DeltaTable(root).generate()
    write_deltalake(root, ROWS, mode="append")  # The commit succeeds, and the manifests stay as they were.
    assert (DeltaTable(root).version(), manifests(root)) == (2, before)


def test_a_shallow_clone_is_made_again_with_manifests(tmp_path: Path) -> None:
    for name in ("t", "u"):
        write_deltalake(tmp_path / name, ROWS if name == "t" else ROWS.slice(3))
    target = tmp_path / "clone"
    DeltaTable(tmp_path / "t").clone(target, shallow=True, configuration={ENABLED: "true"})
    DeltaTable(tmp_path / "u").clone(target, shallow=True, mode="overwrite", configuration={ENABLED: "true"})
    assert ids(target) == [3]
