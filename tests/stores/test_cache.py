"""The cache on the local disk saves requests to the store for later and concurrent processes."""

from __future__ import annotations

import logging
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from benches.tables import Checkpointed, build
from deltalog import DeltaTable, _internal, write_deltalake
from deltalog.storage import cache_statistics

from .programs import command, environment, run
from .s3_server import S3Server, kinds

URI = "s3://tables/t"
ROWS = pa.table({"id": range(100), "text": ["text"] * 100})

Count = Callable[[Callable[[], object]], Counter[str]]


@pytest.fixture
def options(s3: S3Server, tmp_path: Path) -> dict[str, str]:
    return {**s3.options(), "cache_dir": str(tmp_path / "cache"), "cache_size": "64MiB"}


@pytest.fixture
def counted(s3: S3Server) -> Count:
    def count(call: Callable[[], object]) -> Counter[str]:
        deltalog.upkeep.wait()
        # Drops all state in memory, as in a process that has just started.
        _internal.forget_snapshots()
        s3.take_requests()
        call()
        return Counter(kinds(s3.take_requests()))

    return count


def make_table(s3: S3Server, commits: int) -> None:
    """Creates a table without using the cache: this many commits with one file each, and a checkpoint every ten
    commits.
    """
    for _ in range(commits):
        write_deltalake(URI, ROWS, mode="append", storage_options=s3.options())
    deltalog.upkeep.wait()


def test_open_warm_costs_a_hint_and_a_listing(s3: S3Server, counted: Count, options: dict[str, str]) -> None:
    """With a warm cache, opening a table takes two requests, for the hint and a listing. Even a reader that lists all
    files does not read the log again.
    """
    make_table(s3, 13)
    cold = counted(lambda: DeltaTable(URI, storage_options=options))
    assert cold == Counter(list=1, get=1 + 2 + 1), cold
    assert counted(lambda: DeltaTable(URI, storage_options=options)) == Counter(list=1, get=1)
    files = counted(lambda: pa.table(DeltaTable(URI, storage_options=options).files()))
    assert files <= Counter(list=1, get=1 + 1), files
    for _ in range(2):
        files = counted(lambda: pa.table(DeltaTable(URI, storage_options=options).files()))
        assert files <= Counter(list=1, get=1 + 1), files
    # For the next version, only the new files of the log are read.
    write_deltalake(URI, ROWS, mode="append", storage_options=s3.options())
    newer = counted(lambda: DeltaTable(URI, storage_options=options))
    assert newer == Counter(list=1, get=1 + 1 + 1), newer
    assert DeltaTable(URI, storage_options=options).version() == 13


def test_open_a_large_checkpoint_of_spark(
    s3: S3Server,
    counted: Count,
    options: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Opening a table from a checkpoint that Spark wrote, without a checksum file, takes the same requests for any
    number of files. (It was also tried by hand with a million files.)
    """
    # Protocol and metadata are in the first row group, far from the footer.
    monkeypatch.setattr("benches.tables.checkpointed.ROWS_PER_GROUP", 2_000)
    table = build(tmp_path, Checkpointed(5_000))
    names = ["_last_checkpoint", f"{100:020}.checkpoint.parquet"]
    for name in names:
        s3.put("tables", f"t/_delta_log/{name}", (table / "_delta_log" / name).read_bytes())
    s3.put("tables", f"t/_delta_log/{100:020}.json", b'{"commitInfo":{}}\n')

    def open_table() -> DeltaTable:
        return DeltaTable(URI, storage_options=options)

    # The reads are for the hint, the footer, and the row group with protocol and metadata.
    assert counted(open_table) == Counter(list=1, get=1 + 1 + 1)
    assert counted(open_table) == Counter(list=1, get=1)
    assert counted(lambda: pa.table(open_table().files())) > Counter(list=1, get=1)
    assert counted(lambda: pa.table(open_table().files())) == Counter(list=1, get=1)


def test_the_next_process_is_warm(s3: S3Server, counted: Count, options: dict[str, str]) -> None:
    make_table(s3, 3)
    program = f"""
import pyarrow as pa
from deltalog import DeltaTable
table = DeltaTable({URI!r}, storage_options={options!r})
assert pa.table(table.to_arrow()).num_rows == 300
"""
    assert counted(lambda: run(program)) == Counter(list=1, get=1 + 3 + 3)
    assert counted(lambda: run(program)) == Counter(list=1, get=1 + 3)


def test_data_files_are_checked_but_not_read_again(
    s3: S3Server, counted: Count, options: dict[str, str]
) -> None:
    wide = pa.table({f"c{column}": pa.array(range(40_000), pa.int64()) for column in range(5)})
    write_deltalake(URI, wide, storage_options=s3.options())

    def read(column: str) -> object:
        return pa.table(DeltaTable(URI, storage_options=options).to_arrow(columns=[column]))

    cold = read("c1")
    assert counted(lambda: DeltaTable(URI, storage_options=options)) == Counter(list=1, get=1)
    before = cache_statistics()
    _internal.forget_snapshots()
    s3.take_requests()
    assert read("c1") == cold
    requests = s3.take_requests()
    # Apart from the listing, the store is asked for the hint, which does not exist, and whether the data file has
    # changed, which it has not.
    assert sorted((request["kind"], request["status"]) for request in requests) == [
        ("get", 304),
        ("get", 404),
        ("list", 200),
    ]
    after = cache_statistics()
    # The reads are for the commit, and for the footer and a column of the data file.
    assert (after.hits - before.hits, after.misses) == (3, before.misses)
    assert after.hit_bytes - before.hit_bytes > 64 << 10
    # The cache has only a part of the other column.
    assert counted(lambda: read("c2"))["get"] == 1 + 1 + 1
    assert counted(lambda: read("c2"))["get"] == 1 + 1


def test_a_table_that_replaces_another_table(s3: S3Server, options: dict[str, str]) -> None:
    """If another table replaces a table, files have the same names but different content, so cached content is not
    used.
    """
    write_deltalake(URI, ROWS, storage_options=s3.options())
    write_deltalake("s3://tables/u", ROWS.slice(0, 7), storage_options=s3.options())
    deltalog.upkeep.wait()
    [file] = pa.table(DeltaTable(URI, storage_options=s3.options()).files())["path"].to_pylist()
    [other] = pa.table(DeltaTable("s3://tables/u", storage_options=s3.options()).files())["path"].to_pylist()
    assert pa.table(DeltaTable(URI, storage_options=options).to_arrow()).num_rows == 100
    for key in s3.keys("tables", "t/"):
        s3.delete("tables", key)
    log = "_delta_log/00000000000000000000.json"
    s3.put("tables", f"t/{log}", s3.get("tables", f"u/{log}").replace(other.encode(), file.encode()))
    s3.put("tables", f"t/{file}", s3.get("tables", f"u/{other}"))
    assert pa.table(DeltaTable(URI, storage_options=options).to_arrow()).num_rows == 7
    s3.delete("tables", f"t/{file}")
    with pytest.raises(deltalog.DeltaError):
        pa.table(DeltaTable(URI, storage_options=options).to_arrow())


def test_processes_share_the_cache_while_other_writers_commit(s3: S3Server, options: dict[str, str]) -> None:
    """Several processes use the cache while other writers commit. Each process sees all versions that existed when it
    opened the table, and so does a forked child.
    """
    make_table(s3, 1)
    program = f"""
import os
import pyarrow as pa
from deltalog import DeltaTable, write_deltalake
from deltalog.storage import cache_statistics
options = {options!r}
data = pa.table({{"id": range(10), "text": ["more"] * 10}})
for round in range(3):
    write_deltalake({URI!r}, data, mode="append", storage_options=options)
    table = DeltaTable({URI!r}, storage_options=options)
    version = table.version()
    assert pa.table(table.to_arrow()).num_rows == 100 + 10 * version
assert cache_statistics().hits
if hasattr(os, "fork"):
    if (pid := os.fork()) == 0:
        assert cache_statistics().hits == 0
        table = DeltaTable({URI!r}, storage_options=options)
        assert pa.table(table.to_arrow()).num_rows == 100 + 10 * table.version()
        assert cache_statistics().hits
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
    processes = [subprocess.Popen(command(program), env=environment()) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0] * 2
    assert DeltaTable(URI, storage_options=options).count() == 100 + 6 * 10


def test_commits_with_a_cache(s3: S3Server, counted: Count, options: dict[str, str]) -> None:
    """With a cache, a commit makes the same requests as without, and reads nothing stale."""
    make_table(s3, 2)
    plain = DeltaTable(URI, storage_options=s3.options())

    def append(table: DeltaTable) -> None:
        write_deltalake(table, ROWS, mode="append")
        # The checksum is written in the background after the commit.
        deltalog.upkeep.wait()

    expected = counted(lambda: append(plain))
    cached = DeltaTable(URI, storage_options=options)
    assert counted(lambda: append(cached)) <= expected
    write_deltalake(plain, ROWS, mode="append")
    write_deltalake(cached, ROWS, mode="append")
    cached.update_incremental()
    assert (cached.version(), cached.count()) == (5, 600)


def test_the_variables_of_the_environment(
    s3: S3Server, counted: Count, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(s3, 2)
    monkeypatch.setenv("DELTALOG_CACHE_DIR", str(tmp_path / "cache"))

    def open_table(**more: str) -> Counter[str]:
        return counted(lambda: DeltaTable(URI, storage_options={**s3.options(), **more}))

    open_table()
    assert open_table() == Counter(list=1, get=1)
    # An empty name of the directory turns the cache off.
    assert open_table(cache_dir="") > Counter(list=1, get=1)
    monkeypatch.setenv("DELTALOG_CACHE_SIZE", "some")
    with pytest.raises(
        deltalog.errors.InvalidArgumentError, match="DELTALOG_CACHE_SIZE is not a size: 'some'"
    ):
        open_table()
    # Local tables do not use the cache.
    write_deltalake(tmp_path / "local", ROWS)


def test_bad_options(s3: S3Server, tmp_path: Path) -> None:
    def open_table(**more: str) -> None:
        DeltaTable(URI, storage_options={**s3.options(), **more})

    for options, message in [
        ({"cache_dir": str(tmp_path), "cache_size": "10 boxes"}, "'cache_size' is not a size: '10 boxes'"),
        ({"cache_dir": str(tmp_path), "cache_size": "1MiB"}, "'cache_size' is less than 64MiB"),
        ({"cache_size": "1GiB"}, "has no effect without 'cache_dir'"),
        ({"cach_dir": str(tmp_path)}, "spell it 'cache_dir'"),
    ]:
        with pytest.raises(deltalog.errors.InvalidArgumentError, match=message):
            open_table(**options)


def test_a_directory_that_cannot_be_used_is_one_warning(
    s3: S3Server, counted: Count, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_table(s3, 2)
    (tmp_path / "file").write_text("not a directory")
    options = {**s3.options(), "cache_dir": str(tmp_path / "file" / "cache")}
    for _ in range(2):
        assert DeltaTable(URI, storage_options=options).count() == 200
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    [warning] = warnings
    assert "cache" in warning
    assert str(tmp_path / "file") in warning


def test_no_secret_is_in_the_cache(s3: S3Server, options: dict[str, str]) -> None:
    make_table(s3, 1)
    assert pa.table(DeltaTable(URI, storage_options=options).to_arrow()).num_rows == 100
    files = [file for file in Path(options["cache_dir"]).rglob("*") if file.is_file()]
    assert any(URI.encode() in file.read_bytes() for file in files)
    secrets = [options[name].encode() for name in ("aws_secret_access_key", "aws_access_key_id")]
    assert not any(secret in file.read_bytes() for file in files for secret in secrets)
