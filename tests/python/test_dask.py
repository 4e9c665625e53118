"""Tables are read as Dask frames, and Dask frames are written as commits."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
import textwrap
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import deltalog.dask
from deltalog import (
    AlreadyApplied,
    CommitProperties,
    DeltaTable,
    Field,
    Identity,
    InvalidArgumentError,
    NotATableError,
    Schema,
    SchemaMismatchError,
    TableAlreadyExistsError,
    Transaction,
    write_deltalake,
)
from tests.python.place import data_files

dask: Any = pytest.importorskip("dask")
pytest.importorskip("dask.callbacks")
dd: Any = pytest.importorskip("dask.dataframe")

ROWS = pa.table(
    {
        "k": pa.array(range(8), pa.int64()),
        "i": pa.array([1, 2, None, -5, 2**60 + 1, 0, 7, 8], pa.int64()),
        "d": pa.array([0.0, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 1e300]),
        "s": pa.array(["a", "b'\\c", None, "", "ß", "Ab", "%_", "\n"]),
        "b": pa.array([True, False, None, True, False, True, None, True]),
        "t": pa.array([None if n == 2 else dt.date(2024, 1, n + 1) for n in range(8)]),
        "n": pa.array([dt.datetime(2024, 1, 1, n, 0, 0, 1) for n in range(8)], pa.timestamp("us")),
        "u": pa.array([dt.datetime(2024, 1, 1, n) for n in range(8)], pa.timestamp("us", "UTC")),
        "x": pa.array([Decimal(10) ** 27 + n for n in range(8)], pa.decimal128(38, 2)),
        "l": pa.array([[n, None] for n in range(8)]),
        "st": pa.array([{"a": n, "B": str(n)} for n in range(8)]),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Creates a table of four files with deletion vectors, column mapping and partitions."""
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    gone = ROWS.set_column(0, "k", pa.array(range(100, 108), pa.int64()))
    names = ["before" if name == "i" else name for name in ROWS.column_names]
    for start, end in ((0, 3), (3, 8)):
        part = pa.concat_tables([ROWS[start:end], gone[start:end]]).rename_columns(names)
        part = part.append_column("p", pa.array([k % 2 for k in part["k"].to_pylist()], pa.int32()))
        write_deltalake(tmp_path / "t", part, mode="append", configuration=properties, partition_by="p")
    table = DeltaTable(tmp_path / "t")
    table.alter.rename_column("before", "i")
    assert table.delete("k >= 100")["numDeletedRows"] == 8
    return table


def arrow(frame: Any) -> pa.Table:
    """Returns the rows of a frame, sorted."""
    return pa.Table.from_pandas(frame, preserve_index=False).sort_by("k")


def same(found: pa.Table, expected: pa.Table) -> bool:
    return repr(found.to_pylist()) == repr(
        expected.to_pylist()
    )  # NaN is not equal to itself, so strings are compared.


@pytest.mark.parametrize("partitions", [None, 1, 3, 100])
def test_all_columns_and_values_arrive(table: DeltaTable, partitions: int | None) -> None:
    frame = deltalog.dask.read(table, partitions=partitions)
    assert frame.npartitions == {None: 1, 1: 1, 3: 3, 100: 4}[partitions]
    found = arrow(frame.compute())
    assert same(found.select(ROWS.column_names), ROWS)
    assert len(frame) == 8
    for part in frame.partitions:
        assert list(part.compute().dtypes) == list(frame.dtypes), "types do not depend on the rows"


def test_only_columns_that_are_used_are_read(table: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    read = deltalog.dask._read

    def noted(task: Any, columns: list[str], credentials: Any) -> Any:
        asked.append(columns)
        return read(task, columns, credentials)

    monkeypatch.setattr(deltalog.dask, "_read", noted)
    frame = deltalog.dask.read(table, partitions=2)
    assert frame["k"].sum().compute() == 28
    assert asked == [["k"]] * 2
    assert sorted(frame[frame["i"] > 1][["s"]].compute()["s"]) == ["\n", "%_", "b'\\c", "ß"]
    assert set(map(frozenset, asked[2:])) == {frozenset(["i", "s"])}
    some = deltalog.dask.read(table, ["s", "p"], "i > 1 AND p = 0")
    assert list(some.columns) == ["s", "p"]
    assert sorted(some.compute()["s"]) == ["%_", "ß"]


def test_files_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    for number in range(4):
        write_deltalake(tmp_path / "t", pa.table({"k": [number * 10, number * 10 + 1]}), mode="append")
    for uri in DeltaTable(tmp_path / "t").file_uris("k < 20 OR k > 21"):
        Path(uri.removeprefix("file://")).unlink()
    for predicate in ("k >= 20 AND k < 30", [("k", ">=", 20), ("k", "<", 30)]):
        frame = deltalog.dask.read(tmp_path / "t", predicate=predicate)
        assert sorted(frame.compute()["k"]) == [20, 21]
    none = deltalog.dask.read(tmp_path / "t", predicate="k > 1000")
    assert (len(none), list(none.columns)) == (0, ["k"])
    assert none["k"].sum().compute() == 0


def test_a_frame_keeps_its_version(table: DeltaTable) -> None:
    before = deltalog.dask.read(table)
    table.delete("k > 3")
    assert len(before) == 8
    assert len(deltalog.dask.read(table)) == 4
    assert len(deltalog.dask.read(DeltaTable(table.table_uri, version=1))) == 16


@pytest.mark.parametrize(
    "scheduler", ["threads", "sync", pytest.param("processes", marks=pytest.mark.thorough)]
)
def test_a_frame_is_written_as_one_commit(table: DeltaTable, tmp_path: Path, scheduler: str) -> None:
    frame = deltalog.dask.read(table, partitions=3)
    with dask.config.set(scheduler=scheduler):
        assert deltalog.dask.write(frame, tmp_path / "copy", partition_by="p") == 0
        assert deltalog.dask.write(frame[frame["k"] < 2], tmp_path / "copy", mode="append") == 1
    copy = DeltaTable(tmp_path / "copy")
    assert same(pa.table(copy.to_arrow(predicate="k >= 2")).sort_by("k").select(ROWS.column_names), ROWS[2:])
    assert copy.count() == 10
    assert copy.metadata().partition_columns == ["p"]
    assert len(data_files(tmp_path / "copy")) == len(copy.file_uris())


def test_an_overwrite_replaces_what_was_read(table: DeltaTable) -> None:
    frame = deltalog.dask.read(table)
    other = DeltaTable(table.table_uri)
    write_deltalake(other, pa.table(other.to_arrow())[:1], mode="append")
    with pytest.raises(deltalog.CommitConflictError):
        deltalog.dask.write(frame, table, mode="overwrite")
    table.update_incremental()
    version = deltalog.dask.write(deltalog.dask.read(table), table, mode="overwrite")
    assert (table.version(), table.count()) == (version, 9)


def test_plain_frames_of_pandas(tmp_path: Path) -> None:
    """The columns have NumPy types, or are columns of objects, whose types are known only from the values."""
    rows = pd.DataFrame({"k": range(6), "d": [0.5, None, 2.0] * 2, "o": ["a", None, "c"] * 2}, index=[7] * 6)
    rows["o"] = rows["o"].astype(object)
    frame = dd.from_pandas(rows, npartitions=2)
    deltalog.dask.write(frame, tmp_path / "t")
    written = DeltaTable(tmp_path / "t")
    assert [(field.name, str(field.type)) for field in written.schema().fields] == [
        ("k", "long"),
        ("d", "double"),
        ("o", "string"),
    ]
    assert written.count("d IS NULL AND o IS NULL") == 2
    frame["more"] = frame["k"] * 2
    with pytest.raises(SchemaMismatchError, match="more"):
        deltalog.dask.write(frame, written, mode="append")
    assert deltalog.dask.write(frame, written, mode="append", schema_mode="merge") == 1
    assert written.count("more = 2 * k") == 6
    schema = pa.schema([("k", pa.int32()), ("d", pa.float64()), ("o", pa.string())])
    deltalog.dask.write(frame[["k", "d", "o"]], tmp_path / "given", schema)
    assert pa.schema(DeltaTable(tmp_path / "given").schema()).field("k").type == pa.int32()


def test_identity_columns_are_generated(tmp_path: Path) -> None:
    schema = Schema([Field("id", "long", identity=Identity(start=1, step=1)), Field("k", "long")])
    DeltaTable.create(tmp_path / "t", schema)
    deltalog.dask.write(dd.from_pandas(pd.DataFrame({"k": range(6)}), 3), tmp_path / "t", mode="append")
    ids = pa.table(DeltaTable(tmp_path / "t").to_arrow())["id"].to_pylist()
    assert len(set(ids)) == 6
    assert None not in ids


def test_a_write_that_has_nothing_to_do_computes_nothing(tmp_path: Path) -> None:
    def fail(part: Any) -> Any:
        raise AssertionError("computed")

    rows = dd.from_pandas(pd.DataFrame({"k": [1]}), 1)
    once = CommitProperties(app_transactions=[Transaction("load", 1)])
    assert deltalog.dask.write(rows, tmp_path / "t", commit_properties=once) == 0
    never = rows.map_partitions(fail, meta=rows._meta)
    done = deltalog.dask.write(never, tmp_path / "t", mode="append", commit_properties=once)
    assert isinstance(done, AlreadyApplied)
    assert deltalog.dask.write(never, tmp_path / "t", mode="ignore") is None
    with pytest.raises(TableAlreadyExistsError):
        deltalog.dask.write(never, tmp_path / "t")
    assert DeltaTable(tmp_path / "t").count() == 1


BEGUN, GIVEN_UP, WRITTEN = threading.Event(), threading.Event(), threading.Event()


def fail_later(part: Any) -> Any:
    """Fails in the first partition as soon as the second partition is about to be written."""
    if part["k"].iloc[0] == 0:
        assert BEGUN.wait(60)
        raise ZeroDivisionError
    return part


class GivenUp(dask.callbacks.Callback):  # type: ignore[misc]
    def _finish(self, *_: Any) -> None:
        GIVEN_UP.set()


def test_a_failure_leaves_nothing_although_other_tasks_still_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = deltalog.dask._write

    def write_late(*arguments: Any) -> Any:
        BEGUN.set()
        assert GIVEN_UP.wait(60)
        fragment = write(*arguments)
        WRITTEN.set()
        return fragment

    monkeypatch.setattr(deltalog.dask, "_write", write_late)
    write_deltalake(tmp_path / "t", pa.table({"k": [1]}))
    before = data_files(tmp_path / "t")
    rows = dd.from_pandas(pd.DataFrame({"k": range(2)}), npartitions=2)
    frame = rows.map_partitions(fail_later, meta=rows._meta)
    with GivenUp(), dask.config.set(num_workers=2), pytest.raises(ZeroDivisionError):
        deltalog.dask.write(frame, tmp_path / "t", mode="append")
    assert GIVEN_UP.is_set()
    assert WRITTEN.wait(60)
    assert data_files(tmp_path / "t") == before
    assert DeltaTable(tmp_path / "t").version() == 0


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", Schema([Field("k", "long")]), constraints={"small": "k < 5"})
    frame = dd.from_pandas(pd.DataFrame({"k": range(6)}), npartitions=3)
    with pytest.raises(InvalidArgumentError, match="small"):
        deltalog.dask.write(frame, table, mode="append")
    assert data_files(tmp_path / "t") == []
    assert DeltaTable(tmp_path / "t").version() == 0


def test_what_is_wrong_is_named(table: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match="nowhere"):
        deltalog.dask.read(tmp_path / "nowhere")
    for arguments in (
        {"columns": ["nope"]},
        {"predicate": "nope = 1"},
        {"predicate": "k >"},
        {"partitions": 0},
        {"storage_options": 3},
    ):
        with pytest.raises(InvalidArgumentError):
            deltalog.dask.read(table, **arguments)
    with pytest.raises(InvalidArgumentError, match="frame cannot be"):
        deltalog.dask.write(pd.DataFrame({"k": [1]}), table)
    code = """
        import sys
        sys.modules["dask"] = None
        import deltalog.dask
        try:
            deltalog.dask.read("t")
        except ImportError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ExtraRequiredError deltalog.dask needs dask, which is not installed")
    assert "pip install 'deltalog[dask]'" in done.stdout
