"""Commits through a store that loses answers. (`put` in the crate: the commit rule.)"""

from __future__ import annotations

import json
import threading
from itertools import pairwise

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake

from .s3_server import S3Server, error, rule

URI = "s3://tables/t"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize(
    "fault",
    [
        "close_before",
        "close_after",
        error("ConditionalRequestConflict"),
        error("SlowDown"),
        error("InternalError"),
        error("InternalError", after_effect=True),
    ],
    ids=str,
)
def test_a_commit_without_an_answer_is_made_once(s3: S3Server, fault: str | dict[str, object]) -> None:
    write_deltalake(URI, rows(0), storage_options=s3.options())
    s3.faults(rule(fault, "create", key=".json", when={"nth": 1}))
    s3.take_requests()
    write_deltalake(URI, rows(1), mode="append", storage_options=s3.options())
    table = DeltaTable(URI, storage_options=s3.options())
    assert table.version() == 1
    assert sorted(pa.table(table.to_arrow())["id"].to_pylist()) == [0, 1]
    # The client itself did not send it again: between two creates, the log was read.
    log = [(request["kind"], request["key"]) for request in s3.requests() if "00001.json" in request["key"]]
    for first, second in pairwise(log):
        assert not (first[0] == second[0] == "create"), log


def test_writers_that_lose_answers_commit_each_row_once(s3: S3Server) -> None:
    """Every tenth answer to anything is lost, before or after its effect. No writer sees an error."""
    write_deltalake(URI, rows(-1), storage_options=s3.options())
    s3.faults(
        rule("close_after", "create", when={"chance": {"per_mille": 100, "seed": 1}}),
        rule("close_before", "create", when={"chance": {"per_mille": 50, "seed": 2}}),
        rule("close_after", "put", "get", "list", when={"chance": {"per_mille": 50, "seed": 3}}),
    )
    writers, appends = 8, 6
    failures: list[Exception] = []

    def append(writer: int) -> None:
        try:
            for number in range(appends):
                write_deltalake(
                    URI, rows(writer * appends + number), mode="append", storage_options=s3.options()
                )
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=append, args=[writer]) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    s3.faults()
    assert failures == []
    table = DeltaTable(URI, storage_options=s3.options())
    assert table.version() == writers * appends
    assert sorted(pa.table(table.to_arrow())["id"].to_pylist()) == list(range(-1, writers * appends))
    ids = [
        json.loads(s3.get("tables", f"t/_delta_log/{version:020}.json").split(b"\n")[0])["commitInfo"][
            "txnId"
        ]
        for version in range(table.version() + 1)
    ]
    assert len(set(ids)) == len(ids)
