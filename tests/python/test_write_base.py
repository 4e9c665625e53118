"""A write of an engine, such as Spark, is based on the snapshot that the engine has read."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog import AlreadyApplied, DeltaTable, Field, Identity, Schema, write_deltalake
from deltalog._internal import SparkWrite
from deltalog.arguments import TableOptions

ONE, TWO = pa.table({"id": [1]}), pa.table({"id": [2]})


def ids(path: Path) -> list[int]:
    return sorted(pa.table(DeltaTable(path).to_arrow())["id"].to_pylist())


def begin(
    path: Path, mode: str, base: DeltaTable | None = None, columns: tuple[str, ...] = ("id",)
) -> SparkWrite | None:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in columns]
    schema = json.dumps({"type": "struct", "fields": fields})
    options = TableOptions(None, None)
    application = (str(uuid.uuid4()), 0)  # A write without rows only records the version of its application.
    read = base._snapshot if base else None
    begun = SparkWrite.begin(str(path), schema, mode, options, base=read, app_transaction=application)
    assert not isinstance(begun, AlreadyApplied)
    return begun


def test_a_write_of_an_engine_is_based_on_the_version_that_was_read(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ONE)
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, TWO, mode="append")
    with pytest.raises(deltalog.CommitConflictError, match="version 1"):
        begin(tmp_path, "overwrite", table)
    write = begin(tmp_path, "append", table)
    assert write is not None
    assert write.commit("WRITE", {}, "") == 2
    table.update_incremental()
    first, second = begin(tmp_path, "overwrite", table), begin(tmp_path, "overwrite", table)
    assert first is not None
    assert second is not None
    second = SparkWrite.resume(second.token())
    assert first.commit("WRITE", {}, "") == 3
    with pytest.raises(deltalog.CommitConflictError, match="version 3"):
        second.commit("WRITE", {}, "")
    assert ids(tmp_path) == []


def test_the_base_is_a_snapshot_of_the_same_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "a", ONE)
    write_deltalake(tmp_path / "b", ONE)
    with pytest.raises(deltalog.InvalidArgumentError, match="snapshot of"):
        begin(tmp_path / "a", "append", DeltaTable(tmp_path / "b"))
    assert begin(Path(f"{tmp_path}/b/../a/"), "append", DeltaTable(tmp_path / "a")) is not None


def leave_only_newest(path: Path) -> int:
    """Leaves only the newest version in the log, with its commit and a checkpoint."""
    DeltaTable(path).create_checkpoint()
    newest = DeltaTable(path).version()
    for version in range(newest):
        (path / "_delta_log" / f"{version:020}.json").unlink()
        (path / "_delta_log" / f"{version:020}.crc").unlink(missing_ok=True)
    return newest


@pytest.mark.parametrize("has_constraint", [False, True])
def test_an_append_whose_base_was_cleaned_up_succeeds_unless_the_table_has_changed(
    tmp_path: Path, has_constraint: bool
) -> None:
    """An append whose base version was cleaned up continues, unless the table has changed. In one case, a constraint
    was added, and the append's files were not checked for it.
    """
    write_deltalake(tmp_path, ONE)
    write = begin(tmp_path, "append")
    assert write is not None
    table = DeltaTable(tmp_path)
    if has_constraint:
        table.alter.add_constraint({"small": "id < 2"})
    write_deltalake(tmp_path, ONE, mode="append")
    newest = leave_only_newest(tmp_path)
    if has_constraint:
        with pytest.raises(deltalog.CommitConflictError) as error:
            SparkWrite.resume(write.token())
        # The constraint needs a table feature, so the protocol may have changed, too.
        assert error.value.reason in ("protocol_changed", "metadata_changed")
    else:
        assert SparkWrite.resume(write.token()).commit("WRITE", {}, "") == newest + 1


@pytest.mark.parametrize("columns", [("id",), ("id", "N")])
@pytest.mark.parametrize("counts", [False, True])
def test_an_append_whose_base_was_cleaned_up_does_not_reuse_identity_values(
    tmp_path: Path, counts: bool, columns: tuple[str, ...]
) -> None:
    """PROTOCOL, "Identity Columns": the values in the append's files follow the high water mark of its base version.
    Other writers may have used them since, so the append fails and can be repeated.
    """
    identity = Field("n", "long", identity=Identity(allow_explicit_insert=True))
    DeltaTable.create(tmp_path, Schema([Field("id", "long"), identity]))
    write = begin(tmp_path, "append", columns=columns)
    assert write is not None
    others = ONE if counts else ONE.append_column("n", pa.array([70], pa.int64()))
    write_deltalake(tmp_path, others, mode="append")
    newest = leave_only_newest(tmp_path)
    if counts and columns == ("id",):
        with pytest.raises(deltalog.CommitConflictError) as error:
            SparkWrite.resume(write.token())
        assert error.value.reason == "metadata_changed"
        write = begin(tmp_path, "append")
        assert write is not None
    assert SparkWrite.resume(write.token()).commit("WRITE", {}, "") == newest + 1


def test_a_token_of_a_table_that_was_created_again_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ONE)
    write = begin(tmp_path, "append")
    assert write is not None
    shutil.rmtree(tmp_path)
    write_deltalake(tmp_path, ONE)
    with pytest.raises(deltalog.CommitConflictError, match="created again"):
        SparkWrite.resume(write.token())
