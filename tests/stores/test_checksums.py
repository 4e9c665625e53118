"""Version checksums are written in the background after commits. Protocol: "Version Checksum File"."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

from .s3_server import S3Server, rule

URI = "s3://tables/t"
ROWS = pa.table({"x": [1, 2]})


@pytest.fixture
def in_background() -> Iterator[None]:
    """Lets the work after a commit run in the background, as it does for users."""
    deltalog.upkeep.run_in_background(True)
    yield
    deltalog.upkeep.wait()
    deltalog.upkeep.run_in_background(False)


def table_of(s3: S3Server, commits: int) -> DeltaTable:
    for _ in range(commits):
        write_deltalake(URI, ROWS, mode="append", storage_options=s3.options())
        deltalog.upkeep.wait()
    return DeltaTable(URI, storage_options=s3.options())


def drop(s3: S3Server) -> None:
    for key in s3.keys("tables", "t/"):
        s3.delete("tables", key)


@pytest.mark.usefixtures("in_background")
def test_a_checksum_follows_its_commit(s3: S3Server) -> None:
    """The commit itself takes one listing and two puts. The checksum is written afterwards."""
    table = table_of(s3, 2)
    s3.take_requests()
    write_deltalake(table, ROWS, mode="append")
    deltalog.upkeep.wait()
    kinds = [(request["kind"], request["key"].rpartition(".")[2]) for request in s3.take_requests()]
    assert kinds[:3] == [("put", "parquet"), ("list", "t/_delta_log/"), ("create", "json")]
    # These requests read the previous checksum, write the new one, and check that the table still exists.
    assert sorted(kinds[3:]) == [("create", "crc"), ("get", "crc"), ("head", "json")]
    table.update_incremental()
    assert table.verify().differences == []


@pytest.mark.usefixtures("in_background")
def test_a_checksum_of_a_dropped_table_does_not_stay(s3: S3Server) -> None:
    table = table_of(s3, 2)
    s3.faults(rule({"latency_ms": 300}, key=".crc"))
    write_deltalake(table, ROWS, mode="append")
    drop(s3)
    deltalog.upkeep.wait()
    s3.faults()
    assert s3.keys("tables", "t/") == []
    assert not DeltaTable.is_deltatable(URI, storage_options=s3.options())
    write_deltalake(URI, ROWS, storage_options=s3.options())


@pytest.mark.usefixtures("in_background")
def test_a_checksum_does_not_get_into_the_log_of_another_table(s3: S3Server) -> None:
    """When the checksum is written, another table has replaced the first one and already has this version."""
    table = table_of(s3, 2)
    s3.faults(rule({"latency_ms": 800}, "create", key="2.crc", when={"first": 1}))
    write_deltalake(table, ROWS, mode="append")
    drop(s3)
    other = pa.table({"y": ["a"]})
    for _ in range(3):
        write_deltalake(URI, other, mode="append", storage_options=s3.options())
    deltalog.upkeep.wait()
    s3.faults()
    found = DeltaTable(URI, storage_options=s3.options())
    assert found.version() == 2
    assert found.schema().fields[0].name == "y"
    # The new table has its own checksum or none, but not the dropped table's.
    assert found.verify().differences == []
