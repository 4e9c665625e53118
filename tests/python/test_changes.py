"""The change data feed: `load_cdf`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}


def data(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [f"p{number % 2}" for number in ids]})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Creates a table: version 0 inserts 1 and 2, version 1 adds 3, and version 2 replaces all rows with 4."""
    path = tmp_path_factory.mktemp("changes")
    write_deltalake(path, data(1, 2), partition_by=["p"], configuration=FEED)
    write_deltalake(path, data(3), mode="append")
    write_deltalake(path, data(4), mode="overwrite")
    return DeltaTable(path)


def changes(table: DeltaTable, *arguments: Any, **named: Any) -> list[tuple[int, str, int]]:
    rows = pa.table(table.load_cdf(*arguments, **named)).to_pylist()
    return sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in rows)


V0 = [(0, "insert", 1), (0, "insert", 2)]
V1 = [(1, "insert", 3)]
V2 = [(2, "delete", 1), (2, "delete", 2), (2, "delete", 3), (2, "insert", 4)]


def test_columns_and_types(table: DeltaTable) -> None:
    found = pa.table(table.load_cdf())
    assert found.schema == pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            ("_change_type", pa.string()),
            ("_commit_version", pa.int64()),
            ("_commit_timestamp", pa.timestamp("us", "UTC")),
        ]
    )
    times = {row["_commit_version"]: row["_commit_timestamp"] for row in found.to_pylist()}
    history = {
        entry["version"]: dt.datetime.fromtimestamp(entry["timestamp"] / 1000, dt.timezone.utc)
        for entry in table.history()
    }
    assert times == history


def test_ranges_are_inclusive(table: DeltaTable) -> None:
    assert changes(table) == V0 + V1 + V2
    assert changes(table, 1) == V1 + V2
    assert changes(table, 0, 1) == V0 + V1
    assert changes(table, starting_version=1, ending_version=1) == V1
    assert changes(table, 2, 99) == V2
    assert changes(DeltaTable(table.table_uri, version=0)) == V0 + V1 + V2


def test_ranges_by_time(table: DeltaTable) -> None:
    times = {
        entry["version"]: dt.datetime.fromtimestamp(entry["timestamp"] / 1000, dt.timezone.utc)
        for entry in table.history()
    }
    assert changes(table, starting_timestamp=times[1]) == V1 + V2
    assert changes(table, starting_timestamp=times[1].isoformat(), ending_timestamp=times[1]) == V1
    # A time less than a millisecond after a version counts as later than the version.
    assert changes(table, starting_timestamp=times[1] + dt.timedelta(microseconds=1)) == V2
    assert changes(table, ending_timestamp=dt.datetime(2200, 1, 1)) == V0 + V1 + V2
    assert changes(table, 1, ending_timestamp=times[2] - dt.timedelta(microseconds=1)) == V1


def test_columns_and_predicates(table: DeltaTable) -> None:
    found = pa.table(
        table.load_cdf(columns=["_change_type", "p"], predicate="_commit_version = 2 AND p = 'p1'")
    )
    assert found.to_pylist() == [{"_change_type": "delete", "p": "p1"}] * 2
    assert changes(table, predicate="_change_type = 'delete' AND id > 1") == V2[1:3]


def test_files_that_cannot_match_are_not_opened(tmp_path: Path) -> None:
    """Files are skipped by the statistics of `add` and `remove` actions, by partition values, and by change types."""
    for numbers in ((1, 3), (11, 13), (20, 22)):
        write_deltalake(tmp_path, data(*numbers), mode="append", partition_by=["p"], configuration=FEED)
    table = DeltaTable(tmp_path)
    for path in pa.table(table.files(columns=["path"], predicate="id < 20"))["path"].to_pylist():
        (tmp_path / path).unlink()
    assert changes(table, predicate="id >= 20 AND p = 'p0'") == [(2, "insert", 20), (2, "insert", 22)]
    assert changes(table, predicate="_change_type = 'delete'") == []
    assert changes(table, predicate="p = 'p0'") == [(2, "insert", 20), (2, "insert", 22)]
    with pytest.raises(deltalog.MissingFileError, match="not there"):
        table.load_cdf(predicate="id < 20")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"starting_version": 3}, deltalog.VersionNotFoundError, "versions 0 to 2"),
        (
            {"starting_timestamp": "2200-01-01"},
            deltalog.VersionNotFoundError,
            "versions 0 to 2 were committed from 20",
        ),
        (
            {"ending_timestamp": "2000-01-01"},
            deltalog.VersionNotFoundError,
            "versions 0 to 2 were committed from 20",
        ),
        ({"starting_version": 2, "ending_version": 1}, deltalog.InvalidArgumentError, "before its start"),
    ],
)
def test_out_of_range(
    table: DeltaTable, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        table.load_cdf(**arguments)
    assert changes(table, **arguments, allow_out_of_range=True) == []


def test_contradictory_or_invalid_arguments(table: DeltaTable) -> None:
    for arguments, words in (
        ({"starting_version": 0, "starting_timestamp": "2024-01-01"}, "both"),
        ({"ending_version": 0, "ending_timestamp": "2024-01-01"}, "both"),
        ({"starting_version": -1}, "-1"),
        ({"starting_timestamp": "yesterday"}, "'yesterday'"),
        ({"columns": ["nothing"]}, "nothing"),
        ({"predicate": "nothing = 1"}, "nothing"),
    ):
        with pytest.raises(deltalog.InvalidArgumentError, match=words):
            table.load_cdf(**arguments)


def test_a_table_without_the_feed(tmp_path: Path) -> None:
    write_deltalake(tmp_path, data(1))
    with pytest.raises(deltalog.VersionNotFoundError, match=r"delta\.enableChangeDataFeed"):
        DeltaTable(tmp_path).load_cdf()


def test_a_table_with_the_feed_cannot_use_its_column_names(tmp_path: Path) -> None:
    with pytest.raises(deltalog.SchemaMismatchError, match="_change_type"):
        write_deltalake(tmp_path, pa.table({"_change_type": ["insert"]}), configuration=FEED)
    assert not DeltaTable.is_deltatable(tmp_path)
