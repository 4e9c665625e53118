"""The functions `files` and `file_uris`, which list a table's files."""

from __future__ import annotations

import datetime as dt
import itertools
import os
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

COLUMNS = [
    "path",
    "size",
    "modification_time",
    "partition_values",
    "num_records",
    "stats",
    "deletion_vector",
    "base_row_id",
    "default_row_commit_version",
]
DATA = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("9.99")], pa.decimal128(10, 2)),
        "name": ["a", "b", None, "d"],
        "s": pa.array([{"x": 1}, {"x": None}, {"x": 3}, None], pa.struct({"x": pa.int32()})),
        "day": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
        "city": ["New York/%", "New York/%", "Z\u00fcrich", "x"],
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = tmp_path_factory.mktemp("files")
    write_deltalake(path, DATA, partition_by=["day", "city"])
    return DeltaTable(path)


def root(table: DeltaTable) -> Path:
    return Path(unquote(urlparse(table.table_uri).path))


def test_every_column(table: DeltaTable) -> None:
    files = pa.table(table.files())
    assert files.schema.names == COLUMNS
    assert files.schema.field("partition_values").type == pa.struct({"day": pa.date32(), "city": pa.string()})
    found = {row["partition_values"]["city"]: row for row in files.to_pylist()}
    assert found.keys() == {"New York/%", "Z\u00fcrich", "x"}
    assert found["x"]["partition_values"]["day"] is None
    assert found["Z\u00fcrich"]["partition_values"]["day"] == dt.date(2024, 1, 2)
    for row in files.to_pylist():
        file = root(table) / row["path"]
        assert file.stat().st_size == row["size"]
        assert abs(file.stat().st_mtime - row["modification_time"].timestamp()) < 60
        assert row["deletion_vector"] is None
        assert row["base_row_id"] is None
        assert row["default_row_commit_version"] is None
    first = found["New York/%"]
    assert first["num_records"] == first["stats"]["numRecords"] == 2
    assert first["stats"]["minValues"] == {"id": 1, "price": Decimal("1.50"), "name": "a", "s": {"x": 1}}
    assert first["stats"]["maxValues"] == {"id": 2, "price": Decimal("1.50"), "name": "b", "s": {"x": 1}}
    assert first["stats"]["nullCount"] == {"id": 0, "price": 1, "name": 0, "s": {"x": 1}}
    assert first["stats"]["tightBounds"] is not False


def test_any_columns_in_any_order(table: DeltaTable) -> None:
    whole = pa.table(table.files())
    subsets = [list(chosen) for length in (1, 2) for chosen in itertools.permutations(COLUMNS, length)]
    for chosen in [*subsets, COLUMNS[::-1]]:
        assert pa.table(table.files(columns=chosen)).equals(whole.select(chosen)), chosen


def test_no_columns_give_a_row_count(table: DeltaTable) -> None:
    assert sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(table.files(columns=[]))) == 3


def test_an_unknown_column(table: DeltaTable) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match=r"'sice'.*modification_time"):
        table.files(columns=["sice"])


def test_a_string_is_not_a_list_of_columns(table: DeltaTable) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="list"):
        table.files(columns="path")  # type: ignore[arg-type]
    with pytest.raises(deltalog.InvalidArgumentError, match="list"):
        table.to_arrow(columns="id")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        (None, 3),
        ("day = '2024-01-01'", 1),
        ("day IS NULL", 1),
        ("day > DATE '2024-01-01'", 1),
        ("city = 'New York/%'", 1),
        ("id >= 3", 2),
        ("id > 4", 0),
        ("price < 0 OR name = 'a'", 2),
        ("s.x = 3 AND day IS NOT NULL", 1),
        ("name IS NULL", 1),
        ("id IN (1, 4)", 2),
        ("NOT (id < 3)", 2),
    ],
)
def test_files_that_cannot_match_are_skipped(table: DeltaTable, predicate: str | None, left: int) -> None:
    assert len(table.file_uris(predicate)) == left
    assert pa.table(table.files(predicate)).num_rows == left
    assert pa.table(table.files(predicate, columns=["size"])).num_rows == left


@pytest.mark.parametrize(
    "predicate", ["nothing = 1", "id =", "id = 'x'", "", "s > 1", "id = 1; DROP TABLE t", "\x00"]
)
def test_an_invalid_predicate(table: DeltaTable, predicate: str) -> None:
    for ask in (table.file_uris, table.files, lambda text: table.to_arrow(predicate=text)):
        with pytest.raises(deltalog.InvalidArgumentError):
            ask(predicate)


def test_uris_can_be_opened(table: DeltaTable) -> None:
    for uri in table.file_uris():
        assert uri.startswith(table.table_uri + "/")
        assert (Path(unquote(urlparse(uri).path))).is_file()
    decoded = {
        os.fspath(root(table) / path) for path in pa.table(table.files(columns=["path"]))["path"].to_pylist()
    }
    assert decoded == {unquote(urlparse(uri).path) for uri in table.file_uris()}
