"""The JVM connector and `deltalake` read tables from which a feature was dropped, at every version that they support.
Protocol: "Supported Features"; proposed section "Checkpoint Protection".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm
from tests.python.place import actions

PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"
DATA = pa.table(
    {
        "id": pa.array(range(6), pa.int32()),
        "p": [f"p{number % 2}" for number in range(6)],
        "s": pa.array([{"x": number} for number in range(6)], pa.struct([("x", pa.int32())])),
    }
)


def _deleted(path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    write_deltalake(path, DATA, partition_by=["p"], configuration=properties)
    write_deltalake(path, DATA.slice(0, 0), mode="overwrite", predicate="id % 3 = 1")


def _widened(path: Path) -> None:
    write_deltalake(path, DATA, partition_by=["p"], configuration={"delta.enableTypeWidening": "true"})
    table = DeltaTable(path)
    table.alter.widen_column("id", "long")
    table.alter.widen_column("s.x", "long")
    write_deltalake(path, DATA, mode="append")


def _mapped(path: Path) -> None:
    write_deltalake(path, DATA, partition_by=["p"], configuration={"delta.columnMapping.mode": "name"})
    table = DeltaTable(path)
    table.alter.rename_column("p", "q")
    table.alter.rename_column("s.x", "y")


def _v2(path: Path) -> None:
    write_deltalake(path, DATA, partition_by=["p"], configuration={"delta.checkpointPolicy": "v2"})
    DeltaTable(path).create_checkpoint()


MAKERS: dict[str, Callable[[Path], None]] = {
    "deletionVectors": _deleted,
    "typeWidening": _widened,
    "columnMapping": _mapped,
    "v2Checkpoint": _v2,
}


@pytest.mark.parametrize("feature", MAKERS)
def test_they_read_what_we_leave(jvm: Jvm, tmp_path: Path, feature: str) -> None:
    MAKERS[feature](tmp_path)
    table = DeltaTable(tmp_path)
    before = [
        pa.table(DeltaTable(tmp_path, version=number).to_arrow()) for number in range(table.version() + 1)
    ]
    last = table.alter.drop_feature(feature)
    # These versions are the last one that uses the feature, a checkpoint that hides it, and the first one without it.
    versions = [len(before) - 1, last - 1, last]
    found = jvm.versions(tmp_path, versions)
    assert [rows(data) for data, _ in found] == [rows(before[-1])] * 3
    for number in range(last + 1):
        expected = rows(before[min(number, len(before) - 1)])
        assert rows(pa.table(DeltaTable(tmp_path, version=number).to_arrow())) == expected, number
    protocol = found[-1][1]["protocol"]["protocol"]
    configuration = found[-1][1]["metadata"]["metaData"]["configuration"]
    assert (protocol["minReaderVersion"], configuration[PROTECTED]) == (1, str(last))
    assert feature not in protocol["writerFeatures"]
    assert "checkpointProtection" in protocol["writerFeatures"]
    # The connector continues to write to the table, and keeps the checkpoint protection.
    name = f"delta.`{tmp_path}`"
    jvm.run(f"DELETE FROM {name} WHERE id = 2")
    jvm.run(f"INSERT INTO {name} SELECT * FROM {name} WHERE id = 3")
    expected_rows = rows(jvm.query(f"SELECT * FROM {name}"))
    newest = DeltaTable(tmp_path)
    assert rows(pa.table(newest.to_arrow())) == expected_rows
    for number in range(last, newest.version() + 1):
        theirs = pa.table(deltalake.DeltaTable(tmp_path, version=number).to_pyarrow_table())
        assert rows(theirs) == rows(pa.table(DeltaTable(tmp_path, version=number).to_arrow())), number


def test_we_read_what_they_leave(jvm: Jvm, tmp_path: Path) -> None:
    """The connector drops a feature in the same steps as deltalog, and deltalog reads the result."""
    feature, ours, theirs = "deletionVectors", tmp_path / "ours", tmp_path / "theirs"
    for path in (ours, theirs):
        MAKERS[feature](path)
    last = DeltaTable(ours).alter.drop_feature(feature)
    jvm.run(f"ALTER TABLE delta.`{theirs}` DROP FEATURE {feature}")
    table = DeltaTable(theirs)
    before = rows(pa.table(DeltaTable(ours).to_arrow()))
    assert rows(pa.table(table.to_arrow())) == before
    for number in range(table.version() + 1):
        pa.table(DeltaTable(theirs, version=number).to_arrow())
    protocols = [set(DeltaTable(path).protocol().writer_features or []) for path in (ours, theirs)]
    assert protocols[0] == protocols[1]
    assert table.metadata().configuration[PROTECTED] == str(table.version())

    def operations(path: Path, newest: int) -> list[str]:
        infos = [
            line["commitInfo"]
            for number in range(newest + 1)
            for line in actions(path, number)
            if "commitInfo" in line
        ]
        return [info["operation"] for info in infos]

    own = operations(ours, last)
    assert own[-4:] == operations(theirs, table.version())[-4:] == [*["Empty Commit"] * 3, "DROP FEATURE"]
    write_deltalake(theirs, pa.table({"id": pa.array([9], pa.int32())}), mode="append")
    assert jvm.query(f"SELECT count(*) AS n FROM delta.`{theirs}`").to_pylist() == [{"n": len(before) + 1}]
