"""Counts, minima and maxima come from the log, without reading rows."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog


@pytest.fixture
def table(tmp_path: Path) -> deltalog.DeltaTable:
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3, None], pa.int64()),
            "price": pa.array([Decimal("1.50"), None, Decimal("-0.05"), None], pa.decimal128(10, 2)),
            "day": pa.array([datetime.date(2024, 2, 29), None, None, None], pa.date32()),
            "name": ["a", "b", "c", "d"],
            "part": ["x", "x", "y", None],
        }
    )
    deltalog.write_deltalake(tmp_path / "t", rows, partition_by=["part"])
    return deltalog.DeltaTable(tmp_path / "t")


def test_count(table: deltalog.DeltaTable) -> None:
    assert table.count() == 4
    assert table.count("part = 'x'") == 2
    assert table.count("part IS NULL") == 1
    assert table.count("part = 'x' AND id > 1") == 1
    with pytest.raises(deltalog.InvalidArgumentError, match=r"column .?nothing"):
        table.count("nothing = 1")


def test_count_needs_no_data_files(table: deltalog.DeltaTable, tmp_path: Path) -> None:
    for file in (tmp_path / "t").rglob("*.parquet"):
        file.unlink()
    assert table.count() == 4
    assert table.count("part = 'x'") == 2
    with pytest.raises(deltalog.MissingFileError, match="part=y/"):
        table.count("id > 1")


def test_count_by_partition(table: deltalog.DeltaTable) -> None:
    assert pa.table(table.count_by_partition()).to_pylist() == [
        {"part": None, "count": 1},
        {"part": "x", "count": 2},
        {"part": "y", "count": 1},
    ]
    assert pa.table(table.count_by_partition("part = 'y'")).to_pylist() == [{"part": "y", "count": 1}]


def test_min_max(table: deltalog.DeltaTable) -> None:
    assert table.min_max("id") == (1, 3)
    assert table.min_max("price") == (Decimal("-0.05"), Decimal("1.50"))
    assert table.min_max("day") == (datetime.date(2024, 2, 29), datetime.date(2024, 2, 29))
    assert table.min_max("part") == ("x", "y")
    assert table.min_max("id", "part = 'y'") == (3, 3)
    assert table.min_max("id", "part = 'z'") == (None, None)
    assert table.min_max("name") is None
    assert table.min_max("id", "id > 1") is None
    with pytest.raises(deltalog.InvalidArgumentError, match=r"column .?nothing"):
        table.min_max("nothing")
