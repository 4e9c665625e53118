"""Tests what table objects return: a recent version, for which no request is needed, the commits of the log, and
whether properties allow an operation.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pyarrow
import pytest

from deltalog import (
    DeltaTable,
    InvalidArgumentError,
    NotATableError,
    TableReplacedError,
    UnsupportedFeatureError,
    VersionNotFoundError,
    write_deltalake,
)

ONE = pyarrow.table({"id": [1]})
DAY = timedelta(days=1)


def append(path: Path, times: int = 1) -> None:
    for _ in range(times):
        write_deltalake(path, ONE, mode="append")


def until(table: DeltaTable, version: int, max_age: float) -> None:
    """Asks for a recent version again and again until it is `version`, for at most a minute."""
    deadline = time.monotonic() + 60
    while table.version() != version:
        assert time.monotonic() < deadline
        table.update_incremental(max_age=max_age)
        time.sleep(0.005)


@pytest.mark.usefixtures("background")
def test_a_recent_version_is_returned_at_once_and_refreshed_in_the_background(tmp_path: Path) -> None:
    append(tmp_path)
    table = DeltaTable(tmp_path)
    table.update_incremental(max_age=3600)
    append(tmp_path)
    table.update_incremental(max_age=timedelta(hours=1))
    assert table.version() == 0, "what was the newest a moment ago"
    until(table, 1, 3600)
    append(tmp_path)
    table.update_incremental(max_age=0)
    assert table.version() == 2
    table.load_as_version(0)
    until(table, 2, 3600)


@pytest.mark.usefixtures("background")
def test_opening_a_table_again_may_cost_nothing(tmp_path: Path) -> None:
    append(tmp_path)
    assert DeltaTable(tmp_path).version() == 0
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert DeltaTable(tmp_path, max_age=3600).version() == 0, "the log is not looked at"
    with pytest.raises(NotATableError):
        DeltaTable(tmp_path)
    moved.rename(tmp_path)
    append(tmp_path)
    assert DeltaTable(tmp_path, max_age=3600).version() in (0, 1)
    assert DeltaTable(tmp_path, max_age=0).version() == 1


@pytest.mark.usefixtures("background")
def test_a_replaced_table_is_an_error_of_a_handle_and_a_new_table_of_its_place(tmp_path: Path) -> None:
    append(tmp_path, 3)
    table = DeltaTable(tmp_path)
    table.update_incremental(max_age=3600)
    shutil.rmtree(tmp_path)
    append(tmp_path)
    with pytest.raises(TableReplacedError):
        until(table, -1, 3600)
    assert (table.version(), DeltaTable(tmp_path).version()) == (2, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.usefixtures("background")
def test_a_forked_child_refreshes_on_its_own(tmp_path: Path) -> None:
    append(tmp_path)
    table = DeltaTable(tmp_path)
    table.update_incremental(max_age=3600)
    append(tmp_path)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            table.update_incremental(max_age=3600)
            code = 0 if table.version() == 1 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


_MANY_HANDLES = """
import resource, sys
from deltalog import DeltaTable

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
tables = [DeltaTable(sys.argv[1]) for _ in range(100)]
for _ in range(2):
    assert all(len(table.file_uris()) == 12 and table.count() == 12 for table in tables)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit")
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_handles_keep_no_file_open(tmp_path: Path, policy: str) -> None:
    """Table objects keep no files open, because a process may have more table objects than it may have open files."""
    write_deltalake(tmp_path, ONE, configuration={"delta.checkpointPolicy": policy})
    append(tmp_path, 11)
    DeltaTable(tmp_path).create_checkpoint()
    subprocess.run([sys.executable, "-c", _MANY_HANDLES, str(tmp_path)], check=True, timeout=120)


def test_a_handle_outlives_its_checkpoint(tmp_path: Path) -> None:
    """A clean-up removes the log up to a version after the handle's. When the handle is refreshed, it continues from
    the next checkpoint.
    """
    append(tmp_path, 6)
    DeltaTable(tmp_path, version=3).create_checkpoint()
    table, log = DeltaTable(tmp_path), tmp_path / "_delta_log"
    assert len(table.file_uris()) == 6
    DeltaTable(tmp_path, version=4).create_checkpoint()
    for file in log.iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) < 4:
            file.unlink()
    table.update_incremental()
    assert (table.version(), len(table.file_uris()), table.count()) == (5, 6, 6)
    append(tmp_path)
    table.delete()
    assert (table.version(), table.count()) == (7, 0)


@pytest.mark.parametrize("max_age", [-1, "1", True, float("nan"), timedelta(days=-1)])
def test_invalid_ages(tmp_path: Path, max_age: object) -> None:
    append(tmp_path)
    with pytest.raises(InvalidArgumentError, match="max_age"):
        DeltaTable(tmp_path, max_age=max_age)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="max_age"):
        DeltaTable(tmp_path).update_incremental(max_age=max_age)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="staged_commits"):
        DeltaTable(tmp_path).update_incremental(max_age=1, staged_commits=[])


def test_commits_are_returned_one_by_one_up_to_the_newest(tmp_path: Path) -> None:
    append(tmp_path, 2)
    table = DeltaTable(tmp_path)
    append(tmp_path)
    commits = list(table.commits())
    assert [commit.version for commit in commits] == [0, 1, 2]
    assert [commit.info["operation"] for commit in commits] == ["WRITE"] * 3
    assert [commit.version for commit in table.commits(2)] == [2]
    assert list(table.commits(3)) == []
    actions = [pyarrow.table(commit.actions()) for commit in commits]
    assert pyarrow.concat_tables(actions) == pyarrow.table(DeltaTable(tmp_path).commit_actions(0))
    assert commits[1].timestamp == actions[1]["timestamp"][0].as_py().timestamp() * 1000
    assert repr(commits[1]) == "Commit(version=1, operation='WRITE')"
    with pytest.raises(VersionNotFoundError, match="versions 0 to 2"):
        table.commits(4)


def test_commits_that_no_longer_exist(tmp_path: Path) -> None:
    append(tmp_path, 12)
    table, log = DeltaTable(tmp_path), tmp_path / "_delta_log"
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    assert [commit.version for commit in table.commits(3)] == list(range(3, 12))
    with pytest.raises(VersionNotFoundError, match="versions 3 to 11"):
        table.commits(2)
    commits = table.commits(8)
    assert next(commits).version == 8
    (log / f"{9:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="cleaned up"):
        next(commits)
    with pytest.raises(VersionNotFoundError, match="versions 3 to 8 and 10 to 11"):
        table.commits(8)


def test_retention_and_removal_follow_from_the_properties(tmp_path: Path) -> None:
    append(tmp_path / "plain")
    plain = DeltaTable(tmp_path / "plain")
    assert (plain.log_retention(), plain.deleted_file_retention()) == (30 * DAY, 7 * DAY)
    plain.ensure_removable()
    configuration = {
        "delta.logRetentionDuration": "interval 2 weeks",
        "delta.deletedFileRetentionDuration": "interval 36 hours",
        "delta.appendOnly": "true",
    }
    write_deltalake(tmp_path / "kept", ONE, configuration=configuration)
    kept = DeltaTable(tmp_path / "kept")
    assert (kept.log_retention(), kept.deleted_file_retention()) == (14 * DAY, 1.5 * DAY)
    with pytest.raises(InvalidArgumentError, match="append-only"):
        kept.ensure_removable()
    log = tmp_path / "plain" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"] = {"delta.logRetentionDuration": "interval 1 month"}
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(UnsupportedFeatureError, match="1 month"):
        DeltaTable(tmp_path / "plain").log_retention()


def test_whether_a_table_exists_is_one_listing(tmp_path: Path) -> None:
    assert not DeltaTable.is_deltatable(tmp_path)
    append(tmp_path)
    assert DeltaTable.is_deltatable(tmp_path)
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("{torn")
    assert DeltaTable.is_deltatable(tmp_path), "a table that cannot be read still exists"


class Ours(DeltaTable):
    """A user's subclass of `DeltaTable`."""


def test_copies_and_unpickled_tables_have_the_class_of_the_table(tmp_path: Path) -> None:
    append(tmp_path, 2)
    table = Ours(tmp_path, version=0)
    for again in (copy.copy(table), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):  # noqa: S301
        assert (type(again), again.version()) == (Ours, 0)
        with pytest.raises(InvalidArgumentError, match="pinned to version 0"):
            again.delete()
        again.update_incremental()
        assert (again.version(), table.version()) == (1, 0)


def test_a_copy_keeps_what_a_pickle_leaves_out(tmp_path: Path) -> None:
    """A copy keeps staged commits and storage options, although they are not pickled, because they belong to the
    process.
    """
    append(tmp_path)
    table = DeltaTable(tmp_path, staged_commits=[])
    with pytest.raises(UnsupportedFeatureError, match="staged commits cannot be pickled") as caught:
        pickle.dumps(table)
    assert caught.value.hint
    assert copy.copy(table).version() == 0
