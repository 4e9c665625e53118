"""A scan is divided into tasks, which other processes can read."""

from __future__ import annotations

import multiprocessing
import pickle
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, InvalidArgumentError, MissingFileError, ScanSize, ScanTask, write_deltalake
from tests.stores.s3_server import S3Server


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Creates a table of six files with column mapping, partitions, deletion vectors, and a file without statistics."""
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    schema = pa.schema([("day", pa.date32()), ("i", pa.int64()), ("text", pa.string())])
    table = DeltaTable.create(tmp_path / "t", schema, partition_by="day", configuration=properties)
    for number in range(6):
        rows = range(number * 100, number * 100 + 100)
        days = pa.array([number % 2] * 100, pa.int32()).cast(pa.date32())
        write_deltalake(table, pa.table({"day": days, "i": rows, "text": map(str, rows)}), mode="append")
    table.delete("i % 10 = 0")
    table.alter.rename_column("text", "words")
    return table


def read(tasks: list[ScanTask]) -> list[dict[str, Any]]:
    return [row for task in tasks for row in pa.table(task.read()).to_pylist()]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


CONDITIONS = [
    None,
    "i < 250",
    "day = DATE'1970-01-01'",
    "i % 7 = 3",
    "words = '55'",
    "words IS NULL",
    "i = 100",
]


@pytest.mark.parametrize("count", [1, 2, 4, 100])
@pytest.mark.parametrize("predicate", CONDITIONS)
def test_tasks_read_what_a_scan_reads(table: DeltaTable, count: int, predicate: str | None) -> None:
    tasks = table.scan_tasks(count, predicate=predicate)
    expected = pa.table(table.to_arrow(predicate=predicate))
    assert in_order(read(tasks)) == in_order(expected.to_pylist())
    assert len(tasks) == min(count, sum(task.num_files for task in tasks))
    columns = ["words", "day"]
    some = table.scan_tasks(count, columns, predicate)
    expected = pa.table(table.to_arrow(columns, predicate))
    assert in_order(read(some)) == in_order(expected.to_pylist())
    assert all(pa.schema(task.read()).names == columns for task in some)


def test_a_task_reads_other_columns(table: DeltaTable) -> None:
    """A task can read different columns than the scan, as some libraries request. The scan's condition still
    applies.
    """
    tasks = table.scan_tasks(3, ["words"], "i < 250")
    rows = [row for task in tasks for row in pa.table(task.read(columns=["i", "day"])).to_pylist()]
    expected = pa.table(table.to_arrow(["i", "day"], "i < 250"))
    assert in_order(rows) == in_order(expected.to_pylist())
    assert sum(len(batch) for task in tasks for batch in task.read(columns=[])) == expected.num_rows
    with pytest.raises(InvalidArgumentError, match="there is no column 'nope'"):
        tasks[0].read(columns=["nope"])


def test_tasks_in_order(table: DeltaTable) -> None:
    """Read one after another, the tasks return the rows in the order of an ordered scan."""
    for count in (1, 2, 3, 100):
        tasks = table.scan_tasks(count, predicate="i % 7 < 3", ordered=True)
        expected = pa.table(table.to_arrow(predicate="i % 7 < 3", ordered=True))
        assert read(tasks) == expected.to_pylist()
        assert len(tasks) == min(count, 6)


def test_the_size_of_a_scan(table: DeltaTable) -> None:
    sizes = pa.table(table.files(columns=["size"]))["size"].to_pylist()
    assert table.scan_size() == ScanSize(6, sum(sizes), 540)
    some = table.scan_size("i < 150")
    assert (some.num_files, some.num_rows) == (2, 180)
    one = table.scan_size("day = DATE'1970-01-01' AND i < 150")
    assert (one.num_files, one.num_rows) == (1, 90)
    assert table.scan_size("i > 1000") == ScanSize(0, 0, 0)
    with pytest.raises(InvalidArgumentError, match="nope"):
        table.scan_size("nope = 1")


def test_bounds_of_several_columns(table: DeltaTable, tmp_path: Path) -> None:
    for numbers in ([3, None, 5], [1, 4, 4]):
        rows = pa.table({"a": numbers, "b": [{"c": number} for number in numbers], "f": [0.5, 1.5, 2.5]})
        write_deltalake(tmp_path / "two", rows, mode="append")
    bounds = DeltaTable(tmp_path / "two").bounds(["b.c", "f", "a"])
    assert bounds == {"b.c": (1, 5), "f": None, "a": (1, 5)}
    days = (date(1970, 1, 1), date(1970, 1, 2))
    names = ["i", "day", "words", "i"]
    expected = {name: table.min_max(name) for name in names}
    assert table.bounds(names) == expected
    assert (expected["day"], expected["words"]) == (days, None)
    first = table.bounds(["day", "i"], "day = DATE'1970-01-01'")
    assert first == {"day": (days[0], days[0]), "i": table.min_max("i", "day = DATE'1970-01-01'")}
    assert table.bounds(["i", "day"], "i > 3") == {"i": None, "day": None}
    assert table.bounds([]) == {}
    with pytest.raises(InvalidArgumentError, match="nope"):
        table.bounds(["i", "nope"])
    with pytest.raises(InvalidArgumentError, match=r"columns cannot be 'i'.*\['i'\]"):
        table.bounds("i")  # type: ignore[arg-type]


def test_information_about_a_task(table: DeltaTable) -> None:
    tasks = table.scan_tasks(3)
    assert sum(task.num_files for task in tasks) == 6
    assert sum(task.num_rows or 0 for task in tasks) == table.count() == 540
    sizes = pa.table(table.files(columns=["size"]))["size"].to_pylist()
    assert sum(task.size_in_bytes for task in tasks) == sum(sizes)
    assert {task.table_uri for task in tasks} == {table.table_uri}
    assert len(table.scan_tasks(10, predicate="i < 100")) == 1
    assert table.scan_tasks(10, predicate="i > 1000") == []


def test_a_task_of_files_without_statistics(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path / "t",
        pa.schema([("i", pa.int64())]),
        configuration={"delta.dataSkippingNumIndexedCols": "0"},
    )
    write_deltalake(table, pa.table({"i": [1, 2]}), mode="append")
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace("numRecords", "otherRecords"))
    (task,) = DeltaTable(tmp_path / "t").scan_tasks(4)
    assert task.num_rows is None
    assert pa.table(task.read()).num_rows == 2


def test_a_task_stays_at_its_version(table: DeltaTable) -> None:
    tasks, before = table.scan_tasks(2), pa.table(table.to_arrow()).to_pylist()
    table.delete("i < 300")
    table.alter.rename_column("i", "j")
    assert in_order(read(tasks)) == in_order(before)


def _rows_of(task: ScanTask) -> int:
    return sum(batch.num_rows for batch in task.read())


def test_other_processes_read_tasks(table: DeltaTable) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert sum(pool.map(_rows_of, table.scan_tasks(4, predicate="i >= 200"))) == 360


def test_a_task_has_no_credentials() -> None:
    with S3Server() as store:
        store.create_bucket("lake")
        options = store.options()
        write_deltalake("s3://lake/t", pa.table({"i": [1]}), storage_options=options)
        (task,) = DeltaTable("s3://lake/t", storage_options=options).scan_tasks(1)
        pickled = pickle.dumps(task)
        for name, value in options.items():
            if "key" in name or "secret" in name:
                assert value.encode() not in pickled
                assert value not in repr(task)
        assert pa.table(pickle.loads(pickled).read(options)).to_pylist() == [{"i": 1}]  # noqa: S301


def test_a_shallow_clone(table: DeltaTable, tmp_path: Path) -> None:
    roots = table.clone(tmp_path / "c", shallow=True).allowed_roots
    tasks = DeltaTable(tmp_path / "c", allowed_roots=roots).scan_tasks(2)
    assert len(read(pickle.loads(pickle.dumps(tasks)))) == 540  # noqa: S301


def test_a_missing_file(table: DeltaTable, tmp_path: Path) -> None:
    (task,) = table.scan_tasks(1)
    for file in (tmp_path / "t").rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()
    with pytest.raises(MissingFileError):
        task.read()


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", None, True])
def test_invalid_numbers_are_refused(table: DeltaTable, count: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="count"):
        table.scan_tasks(count)


def test_wrong_arguments(table: DeltaTable) -> None:
    with pytest.raises(InvalidArgumentError, match="there is no column 'nope'"):
        table.scan_tasks(2, ["nope"])
    for predicate in ("nope = 1", "i >", "i = 'a' AND"):
        with pytest.raises(InvalidArgumentError):
            table.scan_tasks(2, predicate=predicate)
