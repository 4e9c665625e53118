"""A process keeps the newest snapshots of tables, so opening a table again takes only a listing and the new commits."""

import contextlib
import gc
import json
import os
import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

# The maximum number of snapshots that a process keeps.
HELD = 64


def numbers(first: int, last: int) -> pa.Table:
    return pa.table({"n": pa.array(range(first, last), pa.int64())})


def rows(table: DeltaTable) -> list[int]:
    found: list[int] = sorted(pa.table(table.to_arrow())["n"].to_pylist())
    return found


def spoil(commit: Path) -> None:
    """Makes a commit unreadable without changing the listing. A call that succeeds afterwards has not read the
    commit.
    """
    times = commit.stat()
    commit.write_bytes(b"x" * times.st_size)
    os.utime(commit, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_opening_again_reads_only_new_commits(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(0, 3))
    first = DeltaTable(path)
    spoil(path / "_delta_log" / f"{0:020}.json")
    again = DeltaTable(path)
    assert (again.version(), rows(again)) == (0, [0, 1, 2])
    # The commit of version 1 is written by hand, because a writer would read the table itself.
    shutil.copy(next(path.glob("*.parquet")), path / "second.parquet")
    size = (path / "second.parquet").stat().st_size
    add = {
        "path": "second.parquet",
        "partitionValues": {},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
    }
    (path / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}))
    newest = DeltaTable(path)
    assert (newest.version(), rows(newest)) == (1, [0, 0, 1, 1, 2, 2])
    assert first.version() == 0, "a table stays at its version"
    with pytest.raises(deltalog.CorruptLogError):
        DeltaTable(path, version=0)


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_a_table_that_was_created_again_is_read_again(tmp_path: Path, commits: int) -> None:
    """If a table was dropped and created again, the new table is read. It may have fewer versions than the old table,
    the same number, or more.
    """
    path = tmp_path / "t"
    write_deltalake(path, numbers(0, 3))
    write_deltalake(path, numbers(3, 5), mode="append")
    old = DeltaTable(path)
    assert rows(old) == [0, 1, 2, 3, 4]
    shutil.rmtree(path)
    for commit in range(commits):
        write_deltalake(path, numbers(100 + commit, 101 + commit), mode="append")
    new = DeltaTable(path)
    assert new.metadata().id != old.metadata().id
    assert (new.version(), rows(new)) == (commits - 1, list(range(100, 100 + commits)))
    shutil.rmtree(path)
    with pytest.raises(deltalog.NotATableError):
        DeltaTable(path)


def test_a_replaced_newest_commit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(0, 3))
    DeltaTable(path)
    (path / "_delta_log" / f"{0:020}.json").write_text("not JSON")
    with pytest.raises(deltalog.CorruptLogError):
        DeltaTable(path)


def test_the_registry_is_limited(tmp_path: Path) -> None:
    paths = [tmp_path / f"t{number}" for number in range(HELD + 1)]
    write_deltalake(paths[0], numbers(0, 3))
    for path in paths[1:]:
        shutil.copytree(paths[0], path)
    for path in paths:
        DeltaTable(path)
    spoil(paths[0] / "_delta_log" / f"{0:020}.json")
    spoil(paths[1] / "_delta_log" / f"{0:020}.json")
    DeltaTable(paths[1])
    with pytest.raises(deltalog.CorruptLogError):
        DeltaTable(paths[0])


def test_forgotten_snapshots_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(0, 3))
    DeltaTable(path)
    spoil(path / "_delta_log" / f"{0:020}.json")
    assert DeltaTable(path).version() == 0
    deltalog._internal.forget_snapshots()
    with pytest.raises(deltalog.CorruptLogError):
        DeltaTable(path)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
def test_no_files_stay_open(tmp_path: Path) -> None:
    """PROTOCOL.md, "Multi-part checkpoint"."""
    path = tmp_path / "t0"
    for number in range(11):
        write_deltalake(path, numbers(number, number + 1), mode="append")
    log = path / "_delta_log"
    whole = log / f"{10:020}.checkpoint.parquet"
    actions, parts = pq.read_table(whole), 4
    step = -(-actions.num_rows // parts)
    for part in range(parts):
        name = f"{10:020}.checkpoint.{part + 1:010}.{parts:010}.parquet"
        pq.write_table(actions.slice(part * step, step), log / name)
    whole.unlink()
    (log / "_last_checkpoint").unlink()
    for number in range(11):
        (log / f"{number:020}.json").unlink()
    paths = [tmp_path / f"t{number}" for number in range(HELD)]
    for copy in paths[1:]:
        shutil.copytree(path, copy)

    def open_files() -> int:
        """Returns how many files of these tables this process has open. Other files are not counted, because they may
        be opened and closed at any time.
        """
        gc.collect()
        found = 0
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found += descriptor.readlink().is_relative_to(tmp_path)
        return found

    assert open_files() == 0
    for _ in range(2):
        for each in paths:
            table = DeltaTable(each)
            assert len(table.file_uris()) == 11
            assert open_files() == 0


def test_snapshots_are_shared_only_with_the_same_roots(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(0, 3))
    DeltaTable(path)
    with_root = deltalog._internal.Snapshot.open(path.as_uri(), allowed_roots=[str(tmp_path)])
    assert with_root.allowed_roots
    assert not deltalog._internal.Snapshot.open(path.as_uri()).allowed_roots


def test_threads_never_see_a_version_go_back(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(0, 1))
    done = threading.Event()
    seen: list[list[int]] = [[] for _ in range(4)]

    def read(versions: list[int]) -> None:
        while not done.is_set():
            versions.append(DeltaTable(path).version())

    threads = [threading.Thread(target=read, args=(versions,)) for versions in seen]
    for thread in threads:
        thread.start()
    for number in range(1, 13):
        write_deltalake(path, numbers(number, number + 1), mode="append")
    done.set()
    for thread in threads:
        thread.join()
    assert all(versions == sorted(versions) for versions in seen)
    assert DeltaTable(path).version() == 12


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_tables_itself(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(0, 3))
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            DeltaTable(path)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if DeltaTable(path).version() == 0 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()
