"""Data from pandas, polars, duckdb and pyarrow can be written, and these libraries can read our streams."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.golden.canonical import rows
from tests.python.place import data_files

UTC = dt.timezone.utc
DATA = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "name": ["a", "\u00e9\U0001f600 and more than twelve bytes", None],
        "when": pa.array(
            [
                dt.datetime(2024, 1, 1, tzinfo=UTC),
                dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
                None,
            ]
        ),
        "flag": [True, None, False],
        "list": [[1], [], None],
    }
)


def pandas_frame() -> pd.DataFrame:
    # By default, pandas converts integers with missing values to floats.
    return pd.DataFrame(
        {
            name: pd.array(DATA[name].to_pylist(), dtype=pd.ArrowDtype(DATA[name].type))
            for name in DATA.column_names
        }
    )


SOURCES = {
    "pyarrow table": lambda: DATA,
    "pyarrow table in chunks": lambda: pa.concat_tables([DATA.slice(0, 1), DATA.slice(1, 0), DATA.slice(1)]),
    "pyarrow reader": DATA.to_reader,
    "pyarrow batch": lambda: DATA.combine_chunks().to_batches()[0],
    "pandas": pandas_frame,
    "polars": lambda: pl.from_arrow(DATA),
    "duckdb": lambda: duckdb.from_arrow(DATA),
}


@pytest.mark.parametrize("name", SOURCES)
def test_each_library_is_a_source(name: str, tmp_path: Path) -> None:
    data = SOURCES[name]()
    assert write_deltalake(tmp_path, data) == 0
    assert rows(pa.table(DeltaTable(tmp_path).to_arrow())) == rows(DATA)


def test_a_table_is_a_source(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "a", DATA)
    write_deltalake(tmp_path / "b", DeltaTable(tmp_path / "a"))
    write_deltalake(tmp_path / "b", DeltaTable(tmp_path / "a").to_arrow(["id"], "id = 1"), mode="append")
    assert len(pa.table(DeltaTable(tmp_path / "b"))) == 4
    # The error that the source raises is reported, not a later one.
    (tmp_path / "a" / data_files(tmp_path / "a")[0]).unlink()
    with pytest.raises(deltalog.MissingFileError, match="not there"):
        write_deltalake(tmp_path / "b", DeltaTable(tmp_path / "a"), mode="append")


def test_a_table_is_overwritten_by_its_own_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    write_deltalake(table, table.to_arrow(predicate="id = 2"), mode="overwrite")
    table.update_incremental()
    assert pa.table(table)["id"].to_pylist() == [2]


def test_pandas_types(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "f": [1.5, float("nan")],
            "s": ["a", "b"],
            "t": pd.to_datetime(["2024-01-01", "2024-01-02"], utc=True),
        }
    )
    write_deltalake(tmp_path, frame)
    read = pa.table(DeltaTable(tmp_path).to_arrow())
    assert read["s"].to_pylist() == ["a", "b"]
    assert read["t"].to_pylist() == list(frame["t"])
    assert read.schema.field("n").type == pa.int64()


def test_each_library_reads_our_streams(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    assert rows(pa.table(table)) == rows(DATA)
    assert pa.schema(table.to_arrow()).names == DATA.column_names
    reader = pa.RecordBatchReader.from_stream(table.to_arrow())
    assert rows(reader.read_all()) == rows(DATA)
    assert rows(pl.DataFrame(table.to_arrow()).to_arrow()) == rows(DATA)
    assert duckdb.from_arrow(table.to_arrow()).aggregate("count(*), sum(id)").fetchall() == [(3, 3)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="pandas 3 needs Python 3.11")
def test_pandas_reads_our_streams(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    frame = pd.DataFrame.from_arrow(DeltaTable(tmp_path).to_arrow())  # type: ignore[attr-defined]
    assert frame["name"].tolist()[:2] == DATA["name"].to_pylist()[:2]
    assert frame["when"].tolist()[:2] == DATA["when"].to_pylist()[:2]


@pytest.mark.parametrize(
    "data",
    [[1, 2], {"a": [1]}, "a", None, pa.array([1]), pa.schema([("a", pa.int8())]), pa.chunked_array([[1]])],
    ids=repr,
)
def test_unsupported_sources(data: Any, tmp_path: Path) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="data"):
        write_deltalake(tmp_path / "t", data)
    assert not (tmp_path / "t").exists()
