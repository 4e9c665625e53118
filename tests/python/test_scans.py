"""The options of a scan, and reading its stream without an Arrow library."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from deltalog import DeltaTable, InvalidArgumentError, MissingFileError, write_deltalake


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Creates a table of six files with partitions and deletion vectors."""
    schema = pa.schema([("day", pa.date32()), ("i", pa.int64()), ("words", pa.string())])
    properties = {"delta.enableDeletionVectors": "true"}
    table = DeltaTable.create(tmp_path / "t", schema, partition_by="day", configuration=properties)
    for number in range(6):
        rows = range(number * 100, number * 100 + 100)
        days = pa.array([number % 2] * 100, pa.int32()).cast(pa.date32())
        write_deltalake(table, pa.table({"day": days, "i": rows, "words": map(str, rows)}), mode="append")
    table.delete("i % 10 = 0")
    return table


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def test_rows_in_order(tmp_path: Path) -> None:
    """The order of rows does not depend on the number of threads or the size of batches, even after a checkpoint."""
    for number in range(30):
        rows = range(number * 2000, number * 2000 + 2000)
        write_deltalake(tmp_path / "t", pa.table({"i": rows, "s": ["x" * 50] * 2000}), mode="append")
    table = DeltaTable(tmp_path / "t")
    paths = pa.table(table.files(columns=["path"]))["path"].to_pylist()
    firsts = [pa.parquet.read_table(tmp_path / "t" / path)["i"][0].as_py() for path in paths]
    expected = [i for first in firsts for i in range(first, first + 2000)]
    settings: list[dict[str, Any]] = [
        {},
        {"threads": 1},
        {"threads": 3, "batch_rows": 7},
        {"batch_rows": 10**5},
    ]
    for options in settings:
        rows = pa.table(table.to_arrow(["i"], ordered=True, **options))
        assert rows["i"].to_pylist() == expected
    some = pa.table(table.to_arrow(["i"], "i % 3 = 1", ordered=True, limit=5000, threads=4))
    assert some["i"].to_pylist() == [i for i in expected if i % 3 == 1][:5000]


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000, 2**62])
def test_the_rows_of_a_batch(table: DeltaTable, batch_rows: int) -> None:
    batches = list(table.to_arrow(batch_rows=batch_rows, threads=2))
    assert all(1 <= len(batch) <= batch_rows for batch in batches)
    assert sum(map(len, batches)) == 540


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", True, 2**70])
@pytest.mark.parametrize("name", ["batch_rows", "threads"])
def test_invalid_numbers_are_refused(table: DeltaTable, name: str, number: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} cannot be .*{number}"):
        table.to_arrow(**{name: number})


@pytest.mark.parametrize("limit", [0, 1, 99, 300, 540, 10_000])
def test_a_limit(table: DeltaTable, limit: int) -> None:
    rows = pa.table(table.to_arrow(limit=limit))
    assert rows.num_rows == min(limit, 540)
    assert rows.schema.names == ["day", "i", "words"]
    every = in_order(pa.table(table.to_arrow()).to_pylist())
    assert set(in_order(rows.to_pylist())) <= set(every)
    some = pa.table(table.to_arrow(["i"], "i >= 500", limit=limit))["i"].to_pylist()
    assert len(some) == min(limit, 90)
    assert all(i >= 500 for i in some)


@pytest.mark.parametrize("limit", [-1, 1.5, "2", True])
def test_invalid_limits_are_refused(table: DeltaTable, limit: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="limit"):
        table.to_arrow(limit=limit)


def test_batches_without_an_arrow_library(table: DeltaTable) -> None:
    stream = table.to_arrow(["i"])
    assert stream.column_names == ["i"]
    first = next(stream)
    assert first.column_names == ["i"]
    assert first.texts()[0][0] == str(pa.record_batch(first)["i"][0].as_py())
    assert first.slice(2, 3).texts() == [first.texts()[0][2:5]]
    rest = pa.table(stream).num_rows
    assert len(first) + rest == 540
    with pytest.raises(ValueError, match="already read"):
        next(stream)
    stream = table.to_arrow()
    assert sum(len(batch) for batch in stream) == 540
    assert list(stream) == []


def test_a_failure_of_a_batch_is_a_deltalog_error(tmp_path: Path) -> None:
    """If a batch fails, deltalog's own error is raised, not an error of the library that reads the stream."""
    for number in range(80):
        write_deltalake(tmp_path / "t", pa.table({"i": [number]}), mode="append")
    table = DeltaTable(tmp_path / "t")
    stream = table.to_arrow()
    next(stream)
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    with pytest.raises(MissingFileError):
        list(stream)
    assert list(stream) == []
    shutil.rmtree(tmp_path / "t")
