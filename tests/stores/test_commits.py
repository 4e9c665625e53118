"""Commits are made exactly once, even if the store's responses are lost. The commit rule is in the crate's module
`put`.
"""

from __future__ import annotations

import json
import threading
from itertools import pairwise

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

from .s3_server import S3Server, error, kinds, rule

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
    # The HTTP client has not repeated the request by itself: the log was read between the two puts.
    log = [(request["kind"], request["key"]) for request in s3.requests() if "00001.json" in request["key"]]
    for first, second in pairwise(log):
        assert not (first[0] == second[0] == "create"), log


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InvalidArgument", "InvalidArgumentError"),
        ("AccessDenied", "AccessDeniedError"),
        ("ExpiredToken", "AccessDeniedError"),
    ],
)
def test_a_commit_that_is_refused_is_an_error_at_once(s3: S3Server, code: str, kind: str) -> None:
    write_deltalake(URI, rows(0), storage_options=s3.options())
    s3.faults(rule(error(code), "create", key=".json"))
    s3.take_requests()
    with pytest.raises(deltalog.DeltaError) as raised:
        write_deltalake(URI, rows(1), mode="append", storage_options=s3.options())
    assert type(raised.value).__name__ == kind
    assert raised.value.version == 1
    assert kinds(s3.requests()).count("create") == 1
    # Nothing was committed, so the write leaves no files behind.
    assert len([key for key in s3.keys("tables") if key.endswith(".parquet")]) == 1


def test_writers_that_lose_answers_commit_each_row_once(s3: S3Server) -> None:
    """Every tenth response is lost, before or after the request's effect. Nevertheless, no writer gets an error."""
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


def test_a_store_that_replaces_commits_is_refused(s3: S3Server) -> None:
    """A store that replaces existing files despite `If-None-Match` could silently lose commits, so it is refused
    before any commit is written.
    """
    s3.create_bucket("replaces")
    s3.set(ignores_conditions=True)
    options = s3.options()
    with pytest.raises(
        deltalog.UnsupportedFeatureError, match=r"replaces existing files .* could be lost.*If-None-Match"
    ):
        write_deltalake("s3://replaces/t", rows(1), storage_options=options)
    with pytest.raises(deltalog.UnsupportedFeatureError, match="replaces existing files"):
        deltalog.storage.check("s3://replaces/t", options)
    # A data file may remain, but nothing was written to the log.
    assert [key for key in s3.keys("replaces") if not key.endswith(".parquet")] == []


def test_a_store_is_tried_once_before_its_first_commit(s3: S3Server) -> None:
    s3.create_bucket("tried")
    options = s3.options()
    table = DeltaTable.create("s3://tried/t", schema=rows(0).schema, storage_options=options)
    for _ in range(3):
        write_deltalake(table, rows(1), mode="append")
    tried = [
        request["kind"] for request in s3.take_requests() if ".deltalog-check-" in (request["key"] or "")
    ]
    assert tried[:3] == ["create", "create", "get"]
    assert tried.count("create") == 2
    deltalog.storage.check("s3://tried/t", options)
    assert not any("check" in key for key in s3.keys("tried"))


def test_reading_does_not_try_a_store(s3: S3Server) -> None:
    write_deltalake(URI, rows(1, 2), storage_options=s3.options())
    s3.create_bucket("copied")
    for key in s3.keys("tables"):
        s3.put("copied", key, s3.get("tables", key))
    s3.take_requests()
    assert DeltaTable("s3://copied/t", storage_options=s3.options()).count() == 2
    assert {request["kind"] for request in s3.take_requests()} <= {"get", "list"}


def test_a_writer_that_must_not_delete_commits(s3: S3Server) -> None:
    s3.create_bucket("kept")
    s3.faults(rule(error("AccessDenied"), "delete", "delete_many"))
    write_deltalake("s3://kept/t", rows(1), storage_options=s3.options())
    assert DeltaTable("s3://kept/t", storage_options=s3.options()).count() == 1
    with pytest.raises(deltalog.AccessDeniedError, match="delete objects"):
        deltalog.storage.check("s3://kept/t", s3.options())


@pytest.mark.parametrize("fault", ["close_before", "close_after", error("SlowDown")], ids=str)
def test_a_store_that_loses_answers_is_tried_again(s3: S3Server, fault: str | dict[str, object]) -> None:
    bucket = f"loses-{len(str(fault))}"
    s3.create_bucket(bucket)
    s3.faults(rule(fault, "create", key="deltalog-check", when={"every": 2}))
    deltalog.storage.check(f"s3://{bucket}/t", s3.options())
    write_deltalake(f"s3://{bucket}/t", rows(1), storage_options=s3.options())
    assert DeltaTable(f"s3://{bucket}/t", storage_options=s3.options()).version() == 0
