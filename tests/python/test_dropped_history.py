"""Reader features are dropped although earlier versions use them (proposed section of the protocol: "Checkpoint
Protection").
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from deltalog import DeltaTable, Field, InvalidArgumentError, Schema, write_deltalake
from tests.python.alter_support import NUMBERS, action, created, refused, rows
from tests.python.place import actions, commit_file

PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


def versions_of(path: Path, pattern: str) -> list[int]:
    names = (file.name for file in (path / "_delta_log").iterdir())
    return sorted(int(name[:20]) for name in names if re.fullmatch(rf"\d{{20}}\.{pattern}", name))


def checkpoints(path: Path) -> list[int]:
    return versions_of(path, r"checkpoint\.parquet")


def schema_names(path: Path, version: int) -> list[str]:
    """Returns the names of the actions for which a checkpoint has columns."""
    names: list[str] = pa.parquet.read_schema(path / "_delta_log" / f"{version:020}.checkpoint.parquet").names
    return names


def age(path: Path, hours: float, versions: range) -> None:
    """Makes commits older by changing their times."""
    time = (datetime.now(tz=timezone.utc) - timedelta(hours=hours)).timestamp()
    for version in versions:
        os.utime(commit_file(path, version), (time, time))


def with_deleted_rows(path: Path, **properties: str) -> DeltaTable:
    """Creates a table of two versions, whose only file has a deletion vector."""
    table = created(path, configuration={"delta.enableDeletionVectors": "true", **properties})
    write_deltalake(path, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", predicate="id = 1")
    table.update_incremental()
    return table


def history(path: Path, newest: int) -> list[list[dict[str, Any]]]:
    return [
        pa.table(DeltaTable(path, version=version).to_arrow()).to_pylist() for version in range(newest + 1)
    ]


def test_checkpoints_hide_the_versions_that_use_the_feature(tmp_path: Path) -> None:
    """ "A special set of protected checkpoints at the DROP FEATURE boundary"."""
    table = with_deleted_rows(tmp_path)
    before = history(tmp_path, 1)
    # The drop makes six versions. The first unsets the property, and the second rewrites the file.
    # Three empty versions for checkpoints follow. The last version drops the feature.
    assert table.alter.drop_feature("deletionVectors") == 7
    operations = [action(tmp_path, version, "commitInfo")["operation"] for version in range(2, 8)]
    assert operations == ["UNSET TBLPROPERTIES", "REORG", *["Empty Commit"] * 3, "DROP FEATURE"]
    assert checkpoints(tmp_path) == [4, 5, 6, 7]
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 7)
    assert "checkpointProtection" in (protocol.writer_features or [])
    assert "deletionVectors" not in (protocol.writer_features or [])
    assert table.metadata().configuration == {PROTECTED: "7"}
    # Every version stays readable.
    assert history(tmp_path, 7) == [*before, *[before[1]] * 6]
    assert rows(table) == [{"id": 2, "name": None}]
    assert not table.verify().differences
    # The protection itself cannot be dropped while the history has versions that it protects.
    with refused(tmp_path, InvalidArgumentError, r"while the history has versions that it protects"):
        table.alter.drop_feature("checkpointProtection")


def test_files_of_vectors_are_protected_from_older_clients(tmp_path: Path) -> None:
    """Clients that do not know deletion vectors might delete the files of the vectors as garbage. So the drop adds
    `remove` actions for these files, as for data files, and VACUUM deletes them no earlier than data files.
    """
    table = with_deleted_rows(tmp_path)
    version = table.alter.drop_feature("deletionVectors")
    (vector,) = [file.name for file in tmp_path.glob("deletion_vector_*.bin")]
    removed = action(tmp_path, version, "remove")
    assert (removed["path"], removed["dataChange"]) == (vector, False)
    assert removed["deletionTimestamp"] > 0
    assert not removed.get("extendedFileMetadata")


def test_a_history_that_needs_nothing_is_not_protected(tmp_path: Path) -> None:
    table = created(tmp_path, configuration={"delta.feature.deletionVectors": "supported"})
    assert table.alter.drop_feature("deletionVectors") == 1
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert checkpoints(tmp_path) == []


def test_types_of_columns(tmp_path: Path) -> None:
    """PROTOCOL, "Timestamp without timezone": users must first drop the columns that have the feature's type, and
    checkpoints hide the old versions that have such columns.
    """
    columns = Schema([Field("a", "timestamp_ntz"), Field("b", "long")])
    table = DeltaTable.create(tmp_path, columns, configuration={"delta.columnMapping.mode": "name"})
    with refused(tmp_path, InvalidArgumentError, "type timestamp_ntz.*drop these columns"):
        table.alter.drop_feature("timestampNtz")
    table.alter.drop_columns("a")
    assert table.alter.drop_feature("timestampNtz") == 5
    # Only one more checkpoint was needed to hide the second feature.
    assert checkpoints(tmp_path) == [2, 3, 4, 5]
    assert table.alter.drop_feature("columnMapping") == 10
    assert checkpoints(tmp_path) == [2, 3, 4, 5, 7, 8, 9, 10]
    assert table.metadata().configuration == {PROTECTED: "10"}
    assert [field.name for field in DeltaTable(tmp_path, version=0).schema().fields] == ["a", "b"]


def test_v2_checkpoints(tmp_path: Path) -> None:
    """PROTOCOL, "V2 Spec": when the feature is dropped, classic checkpoints hide the versions with V2 checkpoints."""
    table = created(tmp_path, configuration={"delta.checkpointPolicy": "v2"})
    table.create_checkpoint()
    assert table.alter.drop_feature("v2Checkpoint") == 5
    assert checkpoints(tmp_path) == [0, 2, 3, 4, 5]
    assert [schema_names(tmp_path, version).count("sidecar") for version in (0, 2, 5)] == [1, 0, 0]
    assert table.metadata().configuration == {PROTECTED: "5"}
    assert table.protocol().min_reader_version == 1
    assert len(rows(table)) == 2


def test_the_history_is_truncated_when_it_is_old_enough(tmp_path: Path) -> None:
    """The first call stops the use of the feature. When the history is old enough, a second call truncates it and
    drops the feature.
    """
    table = with_deleted_rows(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"version 3 of the table.*24 hours") as refusal:
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert (table.version(), checkpoints(tmp_path)) == (4, [4])
    ready = re.search(r"again at (\S+)Z or later", str(refusal.value))
    assert ready is not None
    wait = datetime.fromisoformat(ready[1]).replace(tzinfo=timezone.utc) - datetime.now(tz=timezone.utc)
    assert timedelta(hours=23, minutes=59) < wait < timedelta(hours=24, minutes=2)
    # Until the history is old enough, repeated calls do nothing more.
    with refused(tmp_path, InvalidArgumentError, "version 3 of the table"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    age(tmp_path, 23, range(5))
    with refused(tmp_path, InvalidArgumentError, "version 3 of the table"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    age(tmp_path, 24.1, range(5))
    assert table.alter.drop_feature("deletionVectors", truncate_history=True) == 5
    assert action(tmp_path, 5, "commitInfo")["operationParameters"]["truncateHistory"] is True
    assert versions_of(tmp_path, "json") == [4, 5]
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert (table.metadata().configuration, rows(table)) == ({}, [{"id": 2, "name": None}])


def test_the_retention_of_a_truncated_history_is_a_property(tmp_path: Path) -> None:
    retention = "delta.dropFeatureTruncateHistory.retentionDuration"
    table = with_deleted_rows(tmp_path, **{retention: "interval 90 minutes"})
    with pytest.raises(InvalidArgumentError, match="1 hour and 30 minutes"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    age(tmp_path, 1.6, range(5))
    assert table.alter.drop_feature("deletionVectors", truncate_history=True) == 5


def test_a_drop_that_has_to_wait_deletes_nothing(tmp_path: Path) -> None:
    """If only a part of the history is old enough, so that the feature cannot be dropped yet, no versions are
    deleted.
    """
    table = with_deleted_rows(tmp_path)
    table.create_checkpoint()
    age(tmp_path, 25, range(2))
    before = sorted(file.name for file in (tmp_path / "_delta_log").iterdir())
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="version 3 of the table"):
            table.alter.drop_feature("deletionVectors", truncate_history=True)
        assert set(before) <= {file.name for file in (tmp_path / "_delta_log").iterdir()}
    assert [len(data) for data in history(tmp_path, 4)] == [2, 1, 1, 1, 1]
    # The checkpoint from which later versions are read is also old enough.
    age(tmp_path, 25, range(5))
    assert table.alter.drop_feature("deletionVectors", truncate_history=True) == 5
    assert versions_of(tmp_path, "json") == [4, 5]


def test_a_truncated_history_is_an_hour_old_at_least(tmp_path: Path) -> None:
    """A slow writer may still be trying to create a version. If the version's commit were deleted too early, the
    writer would succeed with a second commit of the same version.
    """
    retention = "delta.dropFeatureTruncateHistory.retentionDuration"
    table = with_deleted_rows(tmp_path, **{retention: "interval 0 hours"})
    for hours in (0, 0.9):
        age(tmp_path, hours, range(table.version() + 1))
        with pytest.raises(InvalidArgumentError, match=r"1 hour after the checkpoint"):
            table.alter.drop_feature("deletionVectors", truncate_history=True)
    age(tmp_path, 1.1, range(5))
    assert table.alter.drop_feature("deletionVectors", truncate_history=True) == 5


def test_no_history_is_truncated_for_features_of_writers(tmp_path: Path) -> None:
    table = created(tmp_path)
    with refused(tmp_path, InvalidArgumentError, "because readers do not need it"):
        table.alter.drop_feature("appendOnly", truncate_history=True)


def test_protection_ends_with_the_history(tmp_path: Path) -> None:
    """The protection ends when the "history is truncated up to at least" the protected version."""
    table = with_deleted_rows(tmp_path)
    assert table.alter.drop_feature("deletionVectors") == 7
    with pytest.raises(InvalidArgumentError, match="version 6 of the table"):
        table.alter.drop_feature("checkpointProtection", truncate_history=True)
    assert table.version() == 7
    age(tmp_path, 25, range(8))
    assert table.alter.drop_feature("checkpointProtection", truncate_history=True) == 8
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert (table.metadata().configuration, rows(table)) == ({}, [{"id": 2, "name": None}])
    assert versions_of(tmp_path, "json") == [7, 8]


def test_an_interrupted_drop_is_continued(tmp_path: Path) -> None:
    """A drop is interrupted after each of its commits. The rows stay the same, and the next drop completes the work."""
    whole = with_deleted_rows(tmp_path / "whole")
    last = whole.alter.drop_feature("deletionVectors")
    for steps in range(2, last):
        path = tmp_path / str(steps)
        path.mkdir()
        for file in (tmp_path / "whole").iterdir():
            if file.is_file():
                (path / file.name).write_bytes(file.read_bytes())
        (path / "_delta_log").mkdir()
        for file in (tmp_path / "whole" / "_delta_log").iterdir():
            if file.name[0].isdigit() and int(file.name[:20]) <= steps:
                (path / "_delta_log" / file.name).write_bytes(file.read_bytes())
        table = DeltaTable(path)
        assert rows(table) == rows(whole)
        assert table.alter.drop_feature("deletionVectors") == last
        assert rows(table) == rows(whole)
        assert checkpoints(path) == checkpoints(tmp_path / "whole")


def test_protected_checkpoints_outlive_a_history_that_is_unknown(tmp_path: Path) -> None:
    """ "Writers must not clean up version history for table versions for which they do not support the protocol"."""
    table = with_deleted_rows(tmp_path)
    # This makes an earlier version use an unknown feature, as if another client had dropped it since.
    unset = commit_file(tmp_path, 2)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["unheardOf"]}
    assert table.alter.drop_feature("deletionVectors") == 7
    (tmp_path / "_delta_log" / f"{2:020}.crc").unlink(missing_ok=True)
    line = str({"protocol": protocol}).replace("'", '"')
    unset.write_text(unset.read_text() + line + "\n")
    write_deltalake(tmp_path, NUMBERS, mode="append")
    # A checkpoint before the protected version covers only a part of the protected history.
    age(tmp_path, 24 * 100, range(6))
    assert DeltaTable(tmp_path).cleanup_metadata(dry_run=True) == []
    age(tmp_path, 24 * 100, range(8))
    deleted = DeltaTable(tmp_path).cleanup_metadata()
    order = [name.endswith(".checkpoint.parquet") for name in deleted]
    assert sum(order) == 3, deleted
    # "Writers must remove commits before removing the associated checkpoints."
    assert order == sorted(order), deleted
    assert len(actions(tmp_path, 7)) > 0
    assert len(rows(table)) == 2


def test_a_history_that_is_known_is_cleaned_up_in_parts(tmp_path: Path) -> None:
    table = with_deleted_rows(tmp_path)
    assert table.alter.drop_feature("deletionVectors") == 7
    age(tmp_path, 24 * 100, range(6))
    assert DeltaTable(tmp_path).cleanup_metadata()
    assert versions_of(tmp_path, "json") == [5, 6, 7]
    assert len(rows(table)) == 1
