"""Ray reads and writes tables. `test_workers.py` runs this file in an environment with Ray."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import ray
from ray.data.datasource.datasink import WriteResult
from ray.data.expressions import col

import deltalog.ray
from deltalog import (
    AlreadyApplied,
    CommitProperties,
    DeltaTable,
    InvalidArgumentError,
    NotATableError,
    Transaction,
    begin_write,
    write_deltalake,
)
from deltalog.parts import Credentials, Parts
from deltalog.ray_data import TableDatasink, TableDatasource
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
    assert deltalog.ray.read(path, ["S", "K"], "K = 20").take_all() == [{"s": "2", "k": 20}]
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
    col("d") > 1,
    ~(col("d") <= -3),
    (col("d") == 1) & (col("k") % 2 == 0),
    (col("d") < 2) | (col("k") % 2 == 0),
    col("d") >= 1.5,
)


@pytest.mark.parametrize("chosen", FILTERS, ids=str)
def test_filters_select_the_rows_that_ray_selects(tmp_path: Path, chosen: Any) -> None:
    columns = {
        "k": [0, 1, 10, 20, 21, 30, 31, None],
        "s": ["0", None, "it's \\ %", "2", None, "3", None, ""],
        "f": [0.5, float("nan"), -0.0, 1.5, None, float("inf"), -float("nan"), 0.0],
        "d": [None if number == 4 else Decimal(number) / 2 for number in range(-6, 10, 2)],
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


def test_a_pickled_source_reads_the_same_rows(path: str) -> None:
    """Ray pickles a source and sends it to the coordinator of `streaming_split`, which Ray Train uses."""
    source = TableDatasource(Parts.of(path, "k < 21", None, None), ["s"]).apply_predicate(col("k") > 0)
    write_deltalake(path, pa.table({"k": [15], "s": ["9"]}), mode="append")
    unpickled = ray.cloudpickle.loads(ray.cloudpickle.dumps(source))
    [one, other] = [
        sorted(str(row) for task in each.get_read_tasks(2) for block in task() for row in block.to_pylist())
        for each in (source, unpickled)
    ]
    assert one == other == ["{'s': '1'}", "{'s': '2'}", "{'s': None}"]
    [part] = deltalog.ray.read(path, predicate="k > 20").streaming_split(1)
    assert sorted(row["k"] for row in part.iter_rows()) == [21, 30, 31]


def test_a_dataset_without_rows_has_columns(path: str, tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "new", pa.schema([("k", pa.int64()), ("s", pa.string())]))
    for dataset in (
        deltalog.ray.read(tmp_path / "new"),
        deltalog.ray.read(path, predicate="k > 1000"),
        deltalog.ray.read(path).filter(expr=col("k") > 1000),
        deltalog.ray.read(path).filter(expr=(col("k") > 1000) & (col("k") % 2 == 1)),
    ):
        assert (dataset.count(), dataset.take_all()) == (0, [])
        assert dataset.schema().names == ["k", "s"]
        assert dataset.select_columns(["s"]).schema().names == ["s"]
        assert dataset.select_columns([]).count() == 0
    assert deltalog.ray.write(deltalog.ray.read(tmp_path / "new"), tmp_path / "copy") == 0
    assert DeltaTable(tmp_path / "copy").schema() == DeltaTable(tmp_path / "new").schema()


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


def test_blocks_of_a_task_may_have_different_types(tmp_path: Path) -> None:
    """If all values of a column are NULL in a block, the column may have the type null in this block. A block without
    rows may have no columns.
    """
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.string())])
    nothing = pa.table({})
    nulls = pa.table({"k": pa.array([2], pa.int32()), "s": pa.nulls(1)})
    texts = pa.table({"s": ["x", "y"], "k": [3, 4]})
    for number, blocks in enumerate([[], [nothing], [nothing, nulls, nulls, nothing, texts, nulls]]):
        with begin_write(tmp_path / str(number), schema) as write:
            sink = TableDatasink(write.task, Credentials(None, None))
            sink.on_write_complete(WriteResult(0, 0, [sink.write(blocks, None)] * bool(blocks)))
            write.commit(sink.fragments)
        table = pa.table(DeltaTable(tmp_path / str(number)).to_arrow())
        rows = [row for block in blocks for row in block.to_pylist()]
        assert sorted(map(str, table.to_pylist())) == sorted(str({"k": r["k"], "s": r["s"]}) for r in rows)


def test_a_task_without_rows_fits_a_table_with_required_columns(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    few = ray.data.range(20, override_num_blocks=2).filter(lambda row: row["id"] >= 15)
    assert deltalog.ray.write(few, table, mode="append") == 1
    assert sorted(pa.table(table.to_arrow())["id"].to_pylist()) == [15, 16, 17, 18, 19]


def objects(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(s=pd.Series(["x", None] * (len(frame) // 2), dtype=object))


def test_the_types_of_python_objects_are_inferred(tmp_path: Path) -> None:
    frames = ray.data.range(4, override_num_blocks=1).map_batches(objects, batch_format="pandas")
    assert deltalog.ray.write(frames, tmp_path / "t") == 0
    table = DeltaTable(tmp_path / "t")
    assert [str(field.type) for field in pa.schema(table.schema())] == ["int64", "string"]
    assert (table.count(), table.count("s = 'x'")) == (4, 2)


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
    with pytest.raises(TypeError, match="unexpected keyword argument 'filter'"):
        deltalog.ray.read(path, filter="k > 5")
    with pytest.raises(InvalidArgumentError, match="dataset cannot be"):
        deltalog.ray.write([1], path)
