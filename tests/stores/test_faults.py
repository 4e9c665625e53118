"""Requests meet network faults: silence, slow responses, and responses that end too early."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake

from .s3_server import S3Server, rule

URI = "s3://tables/t"
ROWS = pa.table({"id": range(20_000)})


@pytest.mark.parametrize("fault", ["silence_before", "silence_after"])
def test_a_commit_that_is_never_answered_is_made_once(s3: S3Server, fault: str) -> None:
    """If a commit gets no response, the time limit ends the wait, and the commit is looked up. The commit rule is in
    the crate's module `put`.
    """
    write_deltalake(URI, ROWS.slice(0, 1), storage_options=s3.options())
    s3.faults(rule(fault, "create", key=".json", when={"nth": 1}))
    options = {**s3.options(), "timeout": "500ms"}
    write_deltalake(URI, ROWS.slice(1, 1), mode="append", storage_options=options)
    table = DeltaTable(URI, storage_options=s3.options())
    assert table.version() == 1
    assert sorted(pa.table(table.to_arrow())["id"].to_pylist()) == [0, 1]
    assert [request["status"] for request in s3.requests()].count(None) == 1


@pytest.mark.parametrize(("kind", "when"), [("get", {"every": 2}), ("list", {"first": 1})])
def test_a_response_that_ends_too_early_is_not_used(s3: S3Server, kind: str, when: dict[str, int]) -> None:
    """A response that ends too early is not used. Half of a commit, a listing or a file would look like a different
    table.
    """
    for start in range(3):
        write_deltalake(URI, ROWS.slice(start, 1), mode="append", storage_options=s3.options())
    s3.faults(rule("cut_body", kind, when=when))
    table = DeltaTable(URI, storage_options=s3.options())
    assert table.version() == 2
    assert sorted(pa.table(table.to_arrow())["id"].to_pylist()) == [0, 1, 2]
    assert any(request["rules"] for request in s3.requests())


def test_a_slow_body_is_read_for_as_long_as_something_comes(s3: S3Server) -> None:
    """The time limit applies to the pauses within a response, not to the whole response."""
    write_deltalake(URI, ROWS, storage_options=s3.options())
    [size] = [len(s3.get("tables", key)) for key in s3.keys("tables") if key.endswith(".parquet")]
    s3.faults(rule({"bytes_per_second": size}, "get", key=".parquet"))
    started = time.monotonic()
    options = {**s3.options(), "read_timeout": "600ms"}
    assert pa.table(DeltaTable(URI, storage_options=options).to_arrow()).num_rows == ROWS.num_rows
    assert time.monotonic() - started > 0.8
