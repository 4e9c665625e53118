"""Manifests are the same, byte for byte, as the JVM connector's, and the connector reads the right rows after
deltalog's purge and repair.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm

ENABLED = "delta.compatibility.symlinkFormatManifest.enabled"
ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "p": ["a b", "a/b", "ü%", None] * 2,
        "day": pa.array([None, 19_000] * 4, pa.date32()),
    }
)


def manifests(path: Path) -> dict[str, list[str]]:
    """Returns the sorted lines of manifests, by their paths. The JVM connector writes the lines in random order."""
    root = path / "_symlink_format_manifest"
    found = (file for file in root.rglob("manifest"))
    return {str(file.relative_to(root)): sorted(file.read_text().splitlines()) for file in found}


def test_manifests_equal_the_jvm_connectors(jvm: Jvm, tmp_path: Path) -> None:
    for partition_by in ([], ["p", "day"]):
        path = tmp_path / f"t{len(partition_by)}"
        for _ in range(2):
            write_deltalake(path, ROWS, partition_by=partition_by, mode="append")
        jvm.run(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
        expected = manifests(path)
        assert len(expected) == (4 if partition_by else 1)
        shutil.rmtree(path / "_symlink_format_manifest")
        assert DeltaTable(path).generate() == 1
        assert manifests(path) == expected
        for file in (path / "_symlink_format_manifest").rglob("manifest"):
            assert file.read_text() == "".join(line + "\n" for line in file.read_text().splitlines())
        # Manifests of partitions without files are deleted, and Hadoop's checksums match the new manifests.
        jvm.run(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
        write_deltalake(path, ROWS.slice(0, 1), mode="overwrite")
        DeltaTable(path).generate()
        ours = manifests(path)
        assert len(ours) == 1
        jvm.run(f"SELECT * FROM text.`{path}/_symlink_format_manifest`")
        jvm.run(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
        assert manifests(path) == ours


def test_both_keep_the_same_manifests(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, ROWS, partition_by=["p"], configuration={ENABLED: "true"})
    assert len(manifests(path)) == 4
    jvm.run(f"INSERT INTO delta.`{path}` SELECT 9, 'z', NULL")
    write_deltalake(path, ROWS.slice(0, 1), mode="append")
    jvm.run(f"DELETE FROM delta.`{path}` WHERE p = 'a/b'")
    DeltaTable(path).delete("p is null")
    kept = manifests(path)
    assert len(kept) == 3
    jvm.run(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
    assert manifests(path) == kept


def test_the_jvm_connector_reads_purged_and_repaired_tables(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    write_deltalake(path, ROWS, partition_by=["p"], configuration=properties)
    write_deltalake(path, ROWS, mode="append")
    table = DeltaTable(path)
    table.delete("id = 1")
    table.alter.drop_columns("day")
    expected = rows(pa.table(table.to_arrow()))
    table.optimize.purge()
    [(found, _)] = jvm.versions(path, [table.version()])
    assert rows(found) == expected
    # The connector finds nothing more to purge.
    version = table.version()
    jvm.run(f"REORG TABLE delta.`{path}` APPLY (PURGE)")
    table.update_incremental()
    assert table.version() == version
    purged = table.version()
    next(file for file in path.rglob("*.parquet") if file.name in " ".join(table.file_uris())).unlink()
    table.repair()
    left = rows(pa.table(table.to_arrow()))
    assert 0 < len(left) < len(expected)
    [(found, _)] = jvm.versions(path, [purged + 1])
    assert rows(found) == left


def test_a_purge_finds_nothing_after_that_of_the_jvm_connector(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "id"}
    nested = pa.table({"id": range(3), "s": [{"x": 1, "y": [{"z": 2, "old": 3}]}] * 3, "old": range(3)})
    write_deltalake(path, nested, configuration=properties)
    table = DeltaTable(path)
    table.delete("id = 1")
    table.alter.drop_columns("old")
    assert table.optimize.purge(dry_run=True)["numFilesRemoved"] == 1
    jvm.run(f"REORG TABLE delta.`{path}` APPLY (PURGE)")
    table.update_incremental()
    assert table.optimize.purge()["numFilesRemoved"] == 0
