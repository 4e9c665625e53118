"""The workers of a Dask cluster read and write tables. `test_workers.py` runs these tests in an environment with
`distributed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import deltalog.dask
from deltalog import DeltaTable
from tests.python.place import data_files


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    settings = {"host": "127.0.0.1", "dashboard_address": None}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **settings) as running,
        Client(running),
    ):
        yield


def broken(part: pd.DataFrame) -> pd.DataFrame:
    if part["k"].iloc[0] == 0:
        raise ZeroDivisionError
    return part


def test_workers_read_and_write(tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"k": range(8), "s": list("abcdefgh")}), npartitions=4)
    assert deltalog.dask.write(frame, tmp_path / "t") == 0
    read = deltalog.dask.read(tmp_path / "t", predicate="k > 1")
    assert (len(read), read["k"].sum().compute()) == (6, 27)
    assert deltalog.dask.write(read[["k"]], tmp_path / "t", mode="append") == 1
    table = DeltaTable(tmp_path / "t")
    assert (table.count(), table.count("s IS NULL")) == (14, 6)
    assert len(data_files(tmp_path / "t")) == len(table.file_uris())


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"k": range(8)}), npartitions=4)
    with pytest.raises(ZeroDivisionError):
        deltalog.dask.write(frame.map_partitions(broken, meta=frame._meta), tmp_path / "t")
    assert data_files(tmp_path / "t") == []
    assert not DeltaTable.is_deltatable(tmp_path / "t")
