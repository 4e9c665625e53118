"""Counts the requests that each operation sends to the store, and compares them with a limit for each kind of
request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

from .s3_server import S3Server

URI = "s3://tables/t"
ROWS = pa.table({"id": range(100), "text": ["text"] * 100})


@pytest.fixture
def counted(s3: S3Server) -> Callable[[Callable[[], object]], Counter[str]]:
    """Counts the requests of a call, including its background work, by kind: `get`, `list`, `put` (of any kind) and
    others.
    """
    # A process tests the store before its first commit, so this commit is made before counting.
    write_deltalake("s3://tables/other", ROWS, storage_options=s3.options())

    def count(call: Callable[[], object]) -> Counter[str]:
        deltalog.upkeep.wait()
        s3.take_requests()
        call()
        deltalog.upkeep.wait()
        return by_kind(s3.take_requests())

    return count


def by_kind(requests: list[dict[str, Any]]) -> Counter[str]:
    kinds = (request["kind"] for request in requests)
    return Counter("put" if kind in ("put", "create", "update") else kind for kind in kinds)


def table_of(s3: S3Server, commits: int) -> DeltaTable:
    """Creates a table with this many commits of one file each, and a checkpoint every ten commits."""
    for _ in range(commits):
        write_deltalake(URI, ROWS, mode="append", storage_options=s3.options())
    return DeltaTable(URI, storage_options=s3.options())


Count = Callable[[Callable[[], object]], Counter[str]]


def test_open(s3: S3Server, counted: Count) -> None:
    table_of(s3, 3)
    opened = counted(lambda: DeltaTable(URI, storage_options=s3.options()))
    # The reads are for the hint, which does not exist because there is no checkpoint, and for the commits.
    assert opened <= Counter(list=1, get=1 + 3), opened
    files = counted(lambda: pa.table(DeltaTable(URI, storage_options=s3.options()).files()))
    assert files == opened


def test_open_from_a_checkpoint(s3: S3Server, counted: Count) -> None:
    """The number of requests does not depend on the commits before the checkpoint."""
    table_of(s3, 13)
    opened = counted(lambda: DeltaTable(URI, storage_options=s3.options()))
    # The reads are for the hint, the commits 11 and 12, and the checksum, which contains protocol and metadata.
    assert opened <= Counter(list=1, get=1 + 2 + 1), opened
    files = counted(lambda: pa.table(DeltaTable(URI, storage_options=s3.options()).files()))
    # A small checkpoint is read with one request.
    assert files <= opened + Counter(get=1), files


def test_open_an_old_version(s3: S3Server, counted: Count) -> None:
    table_of(s3, 3)
    opened = counted(lambda: DeltaTable(URI, version=1, storage_options=s3.options()))
    assert opened <= Counter(list=1, get=1 + 2), opened


def test_refresh(s3: S3Server, counted: Count) -> None:
    table = table_of(s3, 2)
    assert counted(table.update_incremental) == Counter(list=1)
    for _ in range(3):
        write_deltalake(URI, ROWS, mode="append", storage_options=s3.options())
    assert counted(table.update_incremental) == Counter(list=1, get=3)


def split(requests: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """Returns the requests up to the commit, and those that follow it, each by kind."""
    is_commit = [request["kind"] == "create" and request["key"].endswith(".json") for request in requests]
    end = is_commit.index(True) + 1
    return by_kind(requests[:end]), by_kind(requests[end:])


def test_append(s3: S3Server, counted: Count) -> None:
    """An append takes a listing of the log, a put of the data file and a put of the commit. The number of requests
    does not grow with the table.
    """

    def costs(table: DeltaTable) -> tuple[Counter[str], Counter[str]]:
        counted(lambda: None)
        write_deltalake(table, ROWS, mode="append")
        deltalog.upkeep.wait()
        return split(s3.take_requests())

    for commits in (2, 5):
        table = table_of(s3, commits)
        for repeated in range(5):
            append, behind = costs(table)
            assert append == Counter(list=1, put=2), append
            # The new checksum is derived from the checksum of the handle's version, which is read once.
            assert behind <= Counter(put=1, get=0 if repeated else 1), behind
    table.update_incremental()
    append, behind = costs(table)
    assert append == Counter(list=1, put=2), append
    # The checksum of the previous version is still in memory.
    assert behind == Counter(put=1), behind
    assert table.version() == DeltaTable(URI, storage_options=s3.options()).version()


def test_append_to_a_table_that_another_writer_has_changed(s3: S3Server, counted: Count) -> None:
    """The append reads the commit of the other writer. If that commit has changed the schema, the rows are written
    again.
    """
    table = table_of(s3, 2)
    write_deltalake(URI, ROWS, mode="append", storage_options=s3.options())
    cost = counted(lambda: write_deltalake(table, ROWS, mode="append"))
    assert cost <= Counter(list=1, get=2, put=3), cost
    other = DeltaTable(URI, storage_options=s3.options())
    other.alter.add_columns([deltalog.Field("more", "long")])
    write_deltalake(table, ROWS, mode="append")
    table.update_incremental()
    assert (table.version(), table.count()) == (5, 500)


def test_checkpoint(s3: S3Server, counted: Count) -> None:
    table = table_of(s3, 3)
    made = counted(table.create_checkpoint)
    # First the version is looked up again, because a clean-up may have removed it, or it may have a checkpoint.
    # Then the checkpoint and its hint are written. In between, a request checks that the table was not dropped.
    assert made <= Counter(list=2, put=2, get=3, head=1), made


def test_scan_of_one_small_file(s3: S3Server, counted: Count) -> None:
    table = table_of(s3, 1)
    assert counted(lambda: pa.table(table.to_arrow())) == Counter(get=1)
    assert counted(lambda: pa.table(table.to_arrow(columns=["id"], predicate="id > 90"))) == Counter(get=1)


def test_answers_from_the_log_cost_nothing(s3: S3Server, counted: Count) -> None:
    table = table_of(s3, 2)
    assert counted(table.count) == Counter()
    assert counted(lambda: pa.table(table.to_arrow(predicate="id > 1000"))) == Counter()


def test_scan_of_a_large_file_reads_what_it_needs(s3: S3Server, counted: Count) -> None:
    """A scan reads the file's footer and the requested columns, with one request for each row group."""
    wide = pa.table({f"c{column}": pa.array(range(200_000), pa.int64()) for column in range(8)})
    write_deltalake(URI, wide, storage_options=s3.options())
    table = DeltaTable(URI, storage_options=s3.options())
    assert counted(lambda: pa.table(table.to_arrow(columns=["c3"]))) == Counter(get=2)


def test_delete_with_a_vector(s3: S3Server, counted: Count) -> None:
    write_deltalake(
        URI, ROWS, configuration={"delta.enableDeletionVectors": "true"}, storage_options=s3.options()
    )
    table = DeltaTable(URI, storage_options=s3.options())
    deleted = counted(lambda: table.delete("id < 3"))
    # A DELETE refreshes the table, reads the file once, and puts the deletion vector, the commit and its checksum.
    assert deleted <= Counter(get=1 + 1, list=2, put=3), deleted
    # The new version is opened only when it is needed.
    assert counted(table.version) == Counter(list=1, get=1)
    assert counted(lambda: pa.table(table.to_arrow())) == Counter(get=2)


def test_a_log_is_listed_without_its_subdirectories(s3: S3Server, counted: Count) -> None:
    """The listing of the log does not include the directory of sidecars, which may have thousands of files."""
    table_of(s3, 2)
    s3.fill("tables", "t/_delta_log/_sidecars/", ".parquet", 3000)
    s3.fill("tables", "t/_delta_log/_staged_commits/", ".json", 3000)
    opened = counted(lambda: DeltaTable(URI, storage_options=s3.options()))
    assert opened["list"] == 1
