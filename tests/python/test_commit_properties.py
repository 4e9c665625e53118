"""Information that writers record in their commits, and the reasons of conflicts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import AlreadyApplied, CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.python.place import actions, data_files

ROWS = pa.table({"id": [1, 2]})


def recorded(*transactions: Any) -> CommitProperties:
    return CommitProperties(app_transactions=transactions)


def test_custom_metadata_is_in_the_commit_info(tmp_path: Path) -> None:
    """Protocol: "Commit Provenance Information"."""
    metadata = {
        "job": {"id": 7, "tags": ["a", None]},
        "userMetadata": "\u201cnightly\u201d",
        "userName": "me",
    }
    properties = CommitProperties(custom_metadata=metadata)
    write_deltalake(tmp_path, ROWS, commit_properties=properties)
    (latest,) = DeltaTable(tmp_path).history()
    assert {name: latest[name] for name in metadata} == metadata
    assert latest["operation"] == "WRITE"
    # The commit still has the fields that deltalog itself writes, and each field occurs once.
    text = json.dumps(actions(tmp_path, 0)[0], ensure_ascii=False)
    assert all(text.count(f'"{name}"') == 1 for name in metadata)
    DeltaTable.create(
        tmp_path / "made", deltalog.Schema.from_arrow(ROWS.schema), commit_properties=properties
    )
    assert DeltaTable(tmp_path / "made").history()[0]["job"] == metadata["job"]


def test_commits_record_that_rows_keep_their_ids(tmp_path: Path) -> None:
    """PROTOCOL, "Row Tracking": `delta.rowTracking.preserved` is set "if no rows are updated or copied"."""
    properties = CommitProperties({"tags": {"team": "a"}})
    tracked = {"delta.enableRowTracking": "true"}
    write_deltalake(tmp_path, ROWS, configuration=tracked, commit_properties=properties)
    write_deltalake(tmp_path, ROWS, mode="append")
    write_deltalake(tmp_path, ROWS, mode="overwrite")
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableRowTracking": "false"})
    write_deltalake(tmp_path, ROWS, mode="append", commit_properties=properties)
    preserved = {"delta.rowTracking.preserved": "true"}
    tags = [entry.get("tags") for entry in reversed(DeltaTable(tmp_path).history())]
    assert tags == [{"team": "a", **preserved}, preserved, preserved, None, {"team": "a"}]


@pytest.mark.parametrize(
    ("properties", "error", "message"),
    [
        (CommitProperties({"txnId": "mine"}), deltalog.InvalidArgumentError, "'txnId' is set by the commit"),
        (CommitProperties({"timestamp": 1}), deltalog.InvalidArgumentError, "'timestamp' is set by"),
        (CommitProperties({"readVersion": 0}), deltalog.InvalidArgumentError, "'readVersion' is set by"),
        (
            CommitProperties({"userMetadata": 1}),
            deltalog.InvalidArgumentError,
            "'userMetadata' must be a string",
        ),
        (CommitProperties({"tags": ["a"]}), deltalog.InvalidArgumentError, "'tags' must be an object"),
        (recorded(Transaction("a", 1), Transaction("a", 2)), deltalog.InvalidArgumentError, "named twice"),
        ({"custom_metadata": {}}, deltalog.InvalidArgumentError, "pass a CommitProperties"),
    ],
)
def test_properties_that_cannot_be(
    tmp_path: Path, properties: Any, error: type[Exception], message: str
) -> None:
    write_deltalake(tmp_path, ROWS)
    files = data_files(tmp_path)
    with pytest.raises(error, match=message):
        write_deltalake(tmp_path, ROWS, mode="append", commit_properties=properties)
    assert (DeltaTable(tmp_path).version(), data_files(tmp_path)) == (0, files)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CommitProperties({"x": float("nan")}), "no JSON form"),
        (lambda: CommitProperties({"x": object()}), "no JSON form"),
        (lambda: CommitProperties({1: "x"}), "a key of custom_metadata"),  # type: ignore[dict-item]
        (lambda: Transaction("a", 2**63), "a 64-bit integer"),
        (lambda: recorded(("a", 1)), "pass a Transaction"),
    ],
)
def test_properties_that_cannot_be_made(make: Callable[[], object], message: str) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match=message):
        make()


def test_user_metadata_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="twice"):
        write_deltalake(
            tmp_path, ROWS, user_metadata="a", commit_properties=CommitProperties({"userMetadata": "b"})
        )


def test_a_repeated_write_has_no_effect(tmp_path: Path) -> None:
    """Protocol: "Transaction Identifiers"."""
    write_deltalake(tmp_path, ROWS, commit_properties=recorded(Transaction("job", 5, 1_700_000_000_000)))
    table = DeltaTable(tmp_path)
    assert {"txn": {"appId": "job", "version": 5, "lastUpdated": 1_700_000_000_000}} in actions(tmp_path, 0)
    assert (table.transaction_version("job"), table.transaction_version("other")) == (5, None)
    files = data_files(tmp_path)
    modes: tuple[Any, ...] = ("append", "overwrite", "error")
    for again, mode in itertools.product((5, 4), modes):
        unread = Interfering(lambda: pytest.fail("the rows were read"))
        outcome = write_deltalake(
            tmp_path, unread, mode=mode, commit_properties=recorded(Transaction("job", again))
        )
        assert isinstance(outcome, AlreadyApplied)
        found = outcome.app_id, outcome.version, outcome.recorded, outcome.table_version
        assert found == ("job", again, 5, 0)
        assert repr(outcome) == f'AlreadyApplied(app_id="job", version={again}, recorded=5, table_version=0)'
    assert (table.version(), data_files(tmp_path)) == (0, files)
    both = recorded(Transaction("other", 0), Transaction("job", 6))
    assert write_deltalake(tmp_path, ROWS, mode="append", commit_properties=both) == 1
    table.update_incremental()
    assert table.transaction_versions() == {"job": 6, "other": 0}
    assert table.count() == 4


def test_a_write_that_another_process_has_made_has_no_effect(tmp_path: Path) -> None:
    """Protocol: "Transaction Identifiers"."""
    write_deltalake(tmp_path, ROWS)
    properties = recorded(Transaction("job", 1))
    modes: tuple[Any, ...] = ("append", "overwrite")
    for mode in modes:
        # The table object was opened before another process made the same write.
        table = DeltaTable(tmp_path)
        version = table.version()

        def first(mode: Any = mode, properties: CommitProperties = properties) -> None:
            write_deltalake(tmp_path, ROWS, mode=mode, commit_properties=properties)

        again = write_deltalake(tmp_path, Interfering(first), mode=mode, commit_properties=properties)
        assert isinstance(again, AlreadyApplied)
        assert again.table_version == version + 1 == DeltaTable(tmp_path).version()
        properties = recorded(Transaction("job", 2))
    assert len(data_files(tmp_path)) == 3, "the files of the repetitions are deleted"
    assert isinstance(
        write_deltalake(table, ROWS, mode="overwrite", commit_properties=properties), AlreadyApplied
    )
    assert table.count() == 2


class Interfering:
    """An iterator of rows that makes another writer commit while the rows are read."""

    def __init__(self, other: Any) -> None:
        self._other = other

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        def batches() -> Any:
            self._other()
            yield from ROWS.to_batches()

        return pa.RecordBatchReader.from_batches(ROWS.schema, batches()).__arrow_c_stream__(requested_schema)


def conflict(table: Path, other: Any, **arguments: Any) -> deltalog.DeltaError:
    """Makes a write during which `other` commits, and returns the error of the write."""
    before = DeltaTable(table).version() if DeltaTable.is_deltatable(table) else -1
    with pytest.raises(deltalog.DeltaError) as caught:
        write_deltalake(table, Interfering(other), **arguments)
    assert DeltaTable(table).version() == before + 1, "only the other writer has committed"
    assert caught.value.version == before + 1
    return caught.value


def test_the_reason_of_a_conflict(tmp_path: Path) -> None:
    def append(**arguments: Any) -> Any:
        return lambda: write_deltalake(tmp_path / "table", ROWS, mode="append", **arguments)

    def reason(error: deltalog.DeltaError) -> tuple[type, str | None]:
        return type(error), error.reason

    created = conflict(tmp_path / "table", append(), mode="error")
    assert reason(created) == (deltalog.TableAlreadyExistsError, "table_created")
    changed = conflict(tmp_path / "table", append(), mode="overwrite")
    assert reason(changed) == (deltalog.exceptions.ConcurrentAppendException, "concurrent_append")
    one, two = recorded(Transaction("job", 1)), recorded(Transaction("job", 2))
    same = conflict(tmp_path / "table", append(commit_properties=one), mode="append", commit_properties=two)
    assert reason(same) == (deltalog.exceptions.ConcurrentTransactionException, "app_transaction")

    def commit(action: dict[str, Any]) -> Any:
        log = tmp_path / "table" / "_delta_log"
        return lambda: (log / f"{len(list(log.glob('*.json'))):020}.json").write_text(json.dumps(action))

    first = {name: action for line in actions(tmp_path / "table", 0) for name, action in line.items()}
    stricter = first["metaData"] | {"configuration": {"delta.isolationLevel": "Serializable"}}
    metadata = conflict(tmp_path / "table", commit({"metaData": stricter}), mode="append")
    assert reason(metadata) == (deltalog.exceptions.MetadataChangedException, "metadata_changed")
    newer = first["protocol"] | {"minWriterVersion": 4}
    protocol = conflict(tmp_path / "table", commit({"protocol": newer}), mode="append")
    assert reason(protocol) == (deltalog.exceptions.ProtocolChangedException, "protocol_changed")
