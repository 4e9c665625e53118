"""Ctrl-C ends a call that waits for a store. The call ends soon, and its exception says what was committed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from deltalog import (
    CommittedInterrupt,
    DeltaTable,
    Field,
    Schema,
    UnknownCommitInterrupt,
    _internal,
    convert_to_delta,
    write_deltalake,
)
from tests.interrupting import after, pressing, soon_after

from .s3_server import S3Server, rule

URI = "s3://tables/t"
SOON = 3.0
"""The time in seconds within which an interrupted call ends, on a busy machine."""


@pytest.fixture
def options(s3: S3Server) -> dict[str, str]:
    write_deltalake(URI, pa.table({"n": [1, 2]}), storage_options=s3.options())
    _internal.forget_snapshots()
    return s3.options()


def has_commit(s3: S3Server) -> bool:
    """Returns whether version 1 of the table exists."""
    return any(key.endswith("0001.json") for key in s3.keys("tables"))


def numbers(options: dict[str, str]) -> list[int]:
    """Returns the numbers that a new reader finds in the table."""
    _internal.forget_snapshots()
    rows = pa.table(DeltaTable(URI, storage_options=options).to_arrow())
    return sorted(rows["n"].to_pylist())


CALLS: dict[str, tuple[tuple[str, ...], Callable[[DeltaTable, dict[str, str]], Any]]] = {
    "open": (("list", "get", "head"), lambda _, options: DeltaTable(URI, storage_options=options)),
    "rows": (("get",), lambda table, _: table.to_arrow()),
    "vacuum": (("list",), lambda table, _: table.vacuum(dry_run=True)),
    "append": (("put",), lambda table, _: write_deltalake(table, pa.table({"n": [3]}), mode="append")),
    "update": (("put",), lambda table, _: table.update({"n": "n + 1"})),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_waits_for_a_silent_store_ends(s3: S3Server, options: dict[str, str], call: str) -> None:
    kinds, work = CALLS[call]
    table = DeltaTable(URI, storage_options=options)
    _internal.forget_snapshots()
    before = s3.keys("tables")
    s3.faults(rule("silence_before", *kinds))
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as raised, pressing(after(0.1)):
        work(table, options)
    assert time.monotonic() - begun < SOON
    assert type(raised.value) is KeyboardInterrupt, "nothing was committed"
    s3.faults()
    assert s3.keys("tables") == before
    assert numbers(options) == [1, 2]


def test_a_commit_under_way_ends_and_the_exception_has_its_version(
    s3: S3Server, options: dict[str, str]
) -> None:
    """The exception has the version, so the user does not repeat the statement. If it were repeated, `n = n + 1` would
    count twice.
    """
    table = DeltaTable(URI, storage_options=options)
    files = len(s3.keys("tables"))
    s3.faults(rule({"latency_ms": 600}, "create"))
    is_written = soon_after(lambda: len(s3.keys("tables")) > files)
    with (
        pytest.raises(CommittedInterrupt, match="after version 1 of the table s3://tables/t") as raised,
        pressing(is_written),
    ):
        table.update({"n": "n + 1"})
    assert (raised.value.table, raised.value.version, raised.value.versions) == (URI, 1, (1,))
    s3.faults()
    assert numbers(options) == [2, 3]


@pytest.mark.parametrize("call", ["create", "convert"])
def test_the_creation_of_a_table_is_reported_although_it_was_not_opened(s3: S3Server, call: str) -> None:
    """Both calls create a table and then open it. An interrupt in between must report that the table was created."""
    uri, options = "s3://tables/new", s3.options()
    if call == "convert":
        rows = pa.BufferOutputStream()
        parquet.write_table(pa.table({"n": [1]}), rows)
        s3.put("tables", "new/0.parquet", rows.getvalue().to_pybytes())
    _internal.forget_snapshots()

    # The call opens the table as soon as it exists. A store that fell silent at that time might already have answered,
    # so the store is slow from the beginning.
    s3.faults(rule({"latency_ms": 1500}, "list", "get", "head"))

    def is_created() -> bool:
        return any(key.endswith("0000.json") for key in s3.keys("tables"))

    def create() -> None:
        if call == "convert":
            convert_to_delta(uri, storage_options=options)
        else:
            DeltaTable.create(uri, Schema([Field("n", "long")]), storage_options=options)

    with pytest.raises(CommittedInterrupt, match="version 0") as raised, pressing(soon_after(is_created)):
        create()
    assert (raised.value.table, raised.value.version, raised.value.versions) == (uri, 0, (0,))
    s3.faults()
    assert DeltaTable(uri, storage_options=options).version() == 0


def test_a_commit_whose_response_is_lost_is_found(s3: S3Server, options: dict[str, str]) -> None:
    """After a second Ctrl-C the call no longer waits for the response, but reads the commit back."""
    table = DeltaTable(URI, storage_options=options)
    s3.faults(rule("silence_after", "create"))
    with pytest.raises(CommittedInterrupt) as raised, pressing(lambda: has_commit(s3), after(0.5)):
        table.update({"n": "n + 1"})
    assert raised.value.version == 1
    s3.faults()
    assert numbers(options) == [2, 3]


def test_a_commit_whose_outcome_cannot_be_determined_is_reported_as_unknown(
    s3: S3Server, options: dict[str, str]
) -> None:
    table = DeltaTable(URI, storage_options=options)
    files = s3.keys("tables")
    s3.faults(rule("silence_after", "create"), rule("silence_before", "get", key="0001.json"))
    with pytest.raises(UnknownCommitInterrupt) as raised, pressing(lambda: has_commit(s3), after(0.5)):
        table.update({"n": "n + 1"})
    s3.faults()
    assert raised.value.transaction_id
    assert table.find_commit(raised.value.transaction_id) == 1
    assert len(s3.keys("tables")) == len(files) + 2, "the file that the commit may name is kept"
    assert numbers(options) == [2, 3]


def test_files_that_a_silent_store_does_not_delete_are_not_waited_for_one_by_one(s3: S3Server) -> None:
    """The call waits for the deletion of the first file only, and leaves the other files to VACUUM."""
    rows = pa.table({"p": list(range(40)), "n": [0] * 40})
    s3.faults(rule("silence_before", "delete", "delete_many"), rule("silence_before", "put", key="p=39"))
    are_written = soon_after(lambda: sum(key.endswith(".parquet") for key in s3.keys("tables")) == 39)
    begun: list[float] = []

    def is_time() -> bool:
        if is_over := are_written():
            begun.append(time.monotonic())
        return is_over

    with pytest.raises(KeyboardInterrupt), pressing(is_time):
        write_deltalake("s3://tables/many", rows, partition_by=["p"], storage_options=s3.options())
    assert time.monotonic() - begun[0] < 5 + SOON


def test_a_consumer_of_a_stream_is_stopped(s3: S3Server, options: dict[str, str]) -> None:
    """Arrow's C interface cannot pass on an exception. The consumer first raises its own exception, and then Python
    raises the interrupt.
    """
    (last,) = (key for key in s3.keys("tables") if key.endswith(".parquet"))
    # Small files are read in the order of the log, the newest first.
    write_deltalake(URI, pa.table({"n": [3]}), mode="append", storage_options=options)
    s3.faults(rule("silence_before", "get", key=last))
    table = DeltaTable(URI, storage_options=options)
    with pytest.raises(KeyboardInterrupt) as raised, pressing(after(0.5)):
        table.to_pyarrow_table()
    assert "the call was interrupted" in str(raised.value.__context__)


def test_what_another_handler_raises_is_raised(s3: S3Server, options: dict[str, str]) -> None:
    """If the handler of a signal raises an exception, the call raises it. Supervisors and tests with time limits use
    such handlers.
    """

    def stop(*_: object) -> None:
        raise TimeoutError("too late")

    earlier = signal.signal(signal.SIGINT, stop)
    try:
        s3.faults(rule("silence_before", "list", "get"))
        with pytest.raises(TimeoutError, match="too late"), pressing(after(0.1)):
            DeltaTable(URI, storage_options=options)
    finally:
        signal.signal(signal.SIGINT, earlier)


def test_what_another_handler_raises_follows_the_error_of_a_consumer(
    s3: S3Server, options: dict[str, str]
) -> None:
    """The exception of a signal handler is raised in this call, after the consumer's error, and not in a later,
    unrelated call.
    """

    def stop(*_: object) -> None:
        raise TimeoutError("too late")

    (last,) = (key for key in s3.keys("tables") if key.endswith(".parquet"))
    write_deltalake(URI, pa.table({"n": [3]}), mode="append", storage_options=options)
    table = DeltaTable(URI, storage_options=options)
    # The stream reads ahead as soon as it is created.
    s3.faults(rule("silence_before", "get", key=last))
    stream = table.to_arrow()
    earlier = signal.signal(signal.SIGINT, stop)
    try:
        with pytest.raises(TimeoutError, match="too late") as raised, pressing(after(0.5)):
            pa.table(stream)
        assert "the call was interrupted" in str(raised.value.__context__)
        assert signal.getsignal(signal.SIGINT) is stop
    finally:
        signal.signal(signal.SIGINT, earlier)
    s3.faults()
    assert table.version() == 1
