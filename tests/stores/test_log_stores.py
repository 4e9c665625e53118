"""Tests of commits that a log store coordinates. The log store is a Python object or DynamoDB."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.storage import LogEntry, LogStore, register_log_store

from .s3_server import S3Server

NUMBERS = count()
URI = "s3://tables/t"


class InMemory:
    """A log store that keeps its entries in the memory of this process."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], LogEntry] = {}
        self.lock = threading.Lock()
        # The exceptions that the next calls of a method raise, before or after their effect.
        self.faults: list[tuple[str, bool, BaseException]] = []

    def fail(self, method: str, has_effect: bool) -> None:
        with self.lock:
            at = next((at for at, fault in enumerate(self.faults) if fault[:2] == (method, has_effect)), None)
            fault = None if at is None else self.faults.pop(at)
        if fault is not None:
            raise fault[2]

    def put_if_absent(self, entry: LogEntry, /) -> bool:
        self.fail("put_if_absent", False)
        with self.lock:
            found = self.entries.setdefault((entry.table_path, entry.file_name), entry)
        self.fail("put_if_absent", True)
        return found is entry

    def get(self, table_path: str, file_name: str, /) -> LogEntry | None:
        self.fail("get", False)
        return self.entries.get((table_path, file_name))

    def newest(self, table_path: str, /) -> LogEntry | None:
        self.fail("newest", False)
        with self.lock:
            files = [file_name for path, file_name in self.entries if path == table_path]
        return self.entries[table_path, max(files)] if files else None

    def complete(self, entry: LogEntry, /) -> None:
        self.fail("complete", False)
        with self.lock:
            found = self.entries.get((entry.table_path, entry.file_name))
            if found is not None and found.temp_path == entry.temp_path:
                self.entries[entry.table_path, entry.file_name] = found._replace(is_complete=True)


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[InMemory, str, dict[str, str]]]:
    """Returns a log store, and a location whose commits it coordinates: a directory, or an object store that replaces
    existing objects instead of refusing to create them.
    """
    log_store = InMemory()
    options = register_log_store(f"in memory {next(NUMBERS)}", log_store)
    if request.param == "local":
        yield log_store, str(tmp_path / "my table"), options
        return
    s3: S3Server = request.getfixturevalue("s3")
    s3.set(ignores_conditions=True)
    yield log_store, URI, s3.options() | options


Place = tuple[InMemory, str, dict[str, str]]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(uri: str, options: dict[str, str]) -> list[int]:
    return sorted(pa.table(DeltaTable(uri, storage_options=options).to_arrow())["id"].to_pylist())


def test_commits_are_entries(place: Place) -> None:
    log_store, uri, options = place
    checked: LogStore = log_store
    assert checked is log_store
    write_deltalake(uri, rows(0), storage_options=options)
    write_deltalake(uri, rows(1), mode="append", storage_options=options)
    assert ids(uri, options) == [0, 1]
    entries = list(log_store.entries.values())
    assert [entry.file_name for entry in entries] == [
        "00000000000000000000.json",
        "00000000000000000001.json",
    ]
    assert all(entry.is_complete for entry in entries)
    table_path = "s3a://tables/t" if uri == URI else f"file:{uri}"
    assert {entry.table_path for entry in entries} == {table_path}
    deltalog.storage.check(uri, options)


def test_writers_at_the_same_time_commit_each_row_once(place: Place) -> None:
    """Several writers commit at the same time. Some calls of the log store fail, before or after their effect, but
    each row is committed once.
    """
    log_store, uri, options = place
    write_deltalake(uri, rows(-1), storage_options=options)
    failures: list[BaseException] = []
    writers, appends = 6, 4

    def append(writer: int) -> None:
        try:
            for number in range(appends):
                fault = OSError("no answer")
                log_store.faults.append(("put_if_absent", number % 2 == 0, fault))
                write_deltalake(uri, rows(writer * appends + number), mode="append", storage_options=options)
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=append, args=[writer]) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ids(uri, options) == list(range(-1, writers * appends))
    assert len(log_store.entries) == writers * appends + 1


def test_a_commit_of_a_dead_writer_is_recovered(place: Place) -> None:
    log_store, uri, options = place
    write_deltalake(uri, rows(0), storage_options=options)
    # The writer has put its entry, and all its further requests about the entry fail.
    log_store.faults = [("put_if_absent", True, OSError("dead"))]
    log_store.get = only_complete(log_store)  # type: ignore[method-assign]
    with pytest.raises(deltalog.CommitStateUnknownError) as unknown:
        write_deltalake(uri, rows(1), mode="append", storage_options=options)
    del log_store.get
    assert ids(uri, options) == [0, 1]
    transaction = unknown.value.transaction_id
    assert transaction
    assert DeltaTable(uri, storage_options=options).find_commit(transaction) == 1
    write_deltalake(uri, rows(2), mode="append", storage_options=options)
    assert ids(uri, options) == [0, 1, 2]


def only_complete(log_store: InMemory) -> Any:
    """Returns a method `get` that fails for entries that are not complete yet."""

    def get(table_path: str, file_name: str) -> LogEntry | None:
        found = log_store.entries.get((table_path, file_name))
        if found is not None and not found.is_complete:
            raise OSError("dead")
        return found

    return get


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (PermissionError("not for you"), deltalog.AccessDeniedError),
        (RuntimeError("broken"), deltalog.UnavailableError),
    ],
    ids=["denied", "broken"],
)
def test_what_a_log_store_raises_is_the_cause(
    place: Place, raised: Exception, expected: type[Exception]
) -> None:
    log_store, uri, options = place
    write_deltalake(uri, rows(0), storage_options=options)
    log_store.faults = [("newest", False, raised)]
    with pytest.raises(expected, match="log store failed in 'newest'") as failed:
        DeltaTable(uri, storage_options=options)
    assert failed.value.__cause__ is raised
    log_store.faults = [("complete", False, raised)]
    write_deltalake(uri, rows(1), mode="append", storage_options=options)
    assert ids(uri, options) == [0, 1]


def test_nothing_is_committed_if_an_entry_is_refused(place: Place) -> None:
    log_store, uri, options = place
    write_deltalake(uri, rows(0), storage_options=options)
    log_store.faults = [("put_if_absent", False, PermissionError("read only"))]
    with pytest.raises(deltalog.AccessDeniedError, match="log store failed in 'put_if_absent'"):
        write_deltalake(uri, rows(1), mode="append", storage_options=options)
    assert ids(uri, options) == [0]


def test_what_cannot_be_a_log_store_is_refused(tmp_path: Path) -> None:
    log_store = InMemory()
    name = f"twice {next(NUMBERS)}"
    assert register_log_store(name, log_store) == register_log_store(name, log_store) == {"log_store": name}
    with pytest.raises(deltalog.InvalidArgumentError, match="another log store has the name"):
        register_log_store(name, InMemory())
    with pytest.raises(deltalog.InvalidArgumentError, match="name cannot be"):
        register_log_store("DynamoDB", log_store)
    with pytest.raises(deltalog.InvalidArgumentError, match="no method put_if_absent, get, newest, complete"):
        register_log_store("object", object())  # type: ignore[arg-type]
    with pytest.raises(deltalog.InvalidArgumentError, match="'log_store' is unknown for local files"):
        DeltaTable(str(tmp_path), storage_options={"log_store": "nobody"})
    with pytest.raises(deltalog.InvalidArgumentError, match="there is no log store 'nobody'"):
        DeltaTable("s3://tables/t", storage_options={"log_store": "nobody"})
    with pytest.raises(deltalog.InvalidArgumentError, match="set 'log_store' to 'dynamodb'"):
        DeltaTable("s3://tables/t", storage_options={"dynamodb_table": "commits"})
