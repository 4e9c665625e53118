"""Ray reads and writes tables. `test_workers.py` runs this file in an environment with Ray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray
from ray.data.expressions import col

import deltalog.ray
from deltalog import (
    AlreadyApplied,
    CommitProperties,
    DeltaTable,
    InvalidArgumentError,
    NotATableError,
    Transaction,
    write_deltalake,
)
from deltalog.parts import Parts
from deltalog.ray_data import TableDatasource
from tests.python.place import data_files


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=256 << 20,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Creates a table of four files with deletion vectors and column mapping."""
    place = str(tmp_path / "t")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    for number in range(4):
        rows = pa.table({"k": [number * 10, number * 10 + 1], "s": [str(number), None]})
        write_deltalake(place, rows, mode="append", configuration=properties)
    DeltaTable(place).delete("k = 11")
    return place


def values(dataset: Any, column: str = "k") -> list[Any]:
    return sorted(row[column] for row in dataset.take_all())


def test_a_dataset_has_the_rows(path: str) -> None:
    dataset = deltalog.ray.read(path)
    assert dataset.schema().names == ["k", "s"]
    assert dataset.count() == dataset.select_columns([]).count() == 7
    assert dataset.filter(expr=col("k") % 2 == 1).count() == 3
    assert values(dataset) == [0, 1, 10, 20, 21, 30, 31]
    assert values(deltalog.ray.read(path, ["s"], "k >= 20 AND s IS NOT NULL"), "s") == ["2", "3"]
    assert deltalog.ray.read(path, predicate="k > 1000").count() == 0
    write_deltalake(path, pa.table({"k": [99], "s": ["9"]}), mode="append")
    assert dataset.count() == 7, "a dataset keeps its version"


def test_read_tasks_know_rows_bytes_and_columns(path: str) -> None:
    source = TableDatasource(Parts.of(path, None, None, None), None)
    tasks = source.get_read_tasks(3)
    assert len(tasks) == 3
    assert sum(task.metadata.num_rows for task in tasks) == 7
    sizes = pa.table(DeltaTable(path).files(columns=["size"]))["size"].to_pylist()
    assert (
        sum(task.metadata.size_bytes for task in tasks) == source.estimate_inmemory_data_size() == sum(sizes)
    )
    some = source.apply_projection({"s": "s"}).get_read_tasks(1)
    assert [block.column_names for block in some[0]()] == [["s"]] * 4
    filtered = TableDatasource(Parts.of(path, "k < 10", None, None), None).get_read_tasks(8)
    assert [task.metadata.num_rows for task in filtered] == [None]


def test_only_selected_columns_are_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    tasks = TableDatasource.get_read_tasks

    def noted(source: Any, *arguments: Any, **named: Any) -> Any:
        asked.append(source._get_data_columns())
        return tasks(source, *arguments, **named)

    monkeypatch.setattr(TableDatasource, "get_read_tasks", noted)
    assert values(deltalog.ray.read(path).select_columns(["k"])) == [0, 1, 10, 20, 21, 30, 31]
    assert asked[-1] == ["k"]


FILTERS = (
    col("k") > 10,
    (col("k") >= 10) & (col("k") < 31),
    (col("k") == 0) | (col("s") == "3"),
    col("s").is_null(),
    col("s").is_not_null() & (col("k") % 20 == 0),
    ~(col("s") == "2"),
    col("k").is_in([1, 21, 77]),
    (col("k") > 5) & (col("f") > 0.5),
    col("f") != 1.5,
    col("s") == "it's \\ %",
)


@pytest.mark.parametrize("chosen", FILTERS, ids=str)
def test_filters_select_the_rows_that_ray_selects(tmp_path: Path, chosen: Any) -> None:
    columns = {
        "k": [0, 1, 10, 20, 21, 30, 31, None],
        "s": ["0", None, "it's \\ %", "2", None, "3", None, ""],
        "f": [0.5, float("nan"), -0.0, 1.5, None, float("inf"), -float("nan"), 0.0],
    }
    rows = pa.table(columns)
    write_deltalake(tmp_path / "t", rows.slice(0, 4))
    write_deltalake(tmp_path / "t", rows.slice(4), mode="append")
    expected = ray.data.from_arrow(rows).filter(expr=chosen)
    found = deltalog.ray.read(tmp_path / "t").filter(expr=chosen)
    assert sorted(map(str, found.take_all())) == sorted(map(str, expected.take_all()))
    assert found.count() == expected.count()
    only = deltalog.ray.read(tmp_path / "t").filter(expr=chosen).select_columns(["s"])
    assert sorted(map(str, only.take_all())) == sorted(str({"s": row["s"]}) for row in expected.take_all())


def test_a_filter_skips_files(path: str) -> None:
    def tasks(chosen: Any) -> list[Any]:
        source = TableDatasource(Parts.of(path, None, None, None), None)
        found: list[Any] = source.apply_predicate(chosen).get_read_tasks(8)
        return found

    assert len(tasks(col("k") >= 20)) == 2
    assert len(tasks((col("k") >= 20) & (col("k") % 2 == 1))) == 2
    assert len(tasks(col("k") % 2 == 1)) == 4
    [task] = tasks((col("k") >= 30) & (col("k") % 2 == 1))
    assert [block.to_pydict() for block in task()] == [{"k": [31], "s": [None]}]


def double(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "k": batch["k"] * 2}


def test_a_dataset_is_written_as_one_commit(path: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    dataset = deltalog.ray.read(path, ["k"]).map_batches(double)
    assert deltalog.ray.write(dataset, copy) == 0
    once = CommitProperties(app_transactions=[Transaction("load", 1)])
    assert deltalog.ray.write(dataset, copy, mode="append", commit_properties=once) == 1
    repeated = deltalog.ray.write(dataset, copy, mode="append", commit_properties=once)
    assert isinstance(repeated, AlreadyApplied)
    table = DeltaTable(copy)
    assert sorted(pa.table(table.to_arrow())["k"].to_pylist()) == sorted([0, 2, 20, 40, 42, 60, 62] * 2)
    assert len(data_files(copy)) == len(table.file_uris())
    nothing = deltalog.ray.read(path, ["k"], "k > 1000")
    assert deltalog.ray.write(nothing, table, mode="overwrite") == 2
    assert (table.version(), table.count()) == (2, 0)


def broken(batch: dict[str, Any]) -> dict[str, Any]:
    raise ZeroDivisionError


def test_a_failure_commits_nothing(path: str) -> None:
    dataset = deltalog.ray.read(path)
    version = DeltaTable(path).version()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        deltalog.ray.write(dataset.map_batches(broken), path, mode="append")
    DeltaTable(path).alter.add_constraint({"small": "k < 100"})
    with pytest.raises(Exception, match="small"):
        deltalog.ray.write(ray.data.from_items([{"k": 100, "s": "x"}]), path, mode="append")
    assert DeltaTable(path).version() == version + 1


def test_what_is_wrong_is_named(path: str, tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match="nowhere"):
        deltalog.ray.read(tmp_path / "nowhere")
    with pytest.raises(InvalidArgumentError, match="nope"):
        deltalog.ray.read(path, ["nope"])
    with pytest.raises(InvalidArgumentError, match="dataset cannot be"):
        deltalog.ray.write([1], path)
