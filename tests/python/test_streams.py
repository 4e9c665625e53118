"""Writes of long Arrow streams need little memory, and commit nothing if the source fails or is interrupted."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.python.place import data_files, tree

SCHEMA = pa.schema([("id", pa.int64())])


def failing(exception: BaseException, after: int) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(after):
            yield pa.record_batch({"id": [number] * 100_000})
        raise exception

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize("after", [0, 3])
def test_a_failing_source_leaves_nothing_behind(after: int, mode: str, tmp_path: Path) -> None:
    table = tmp_path / "t"
    if mode != "error":
        # The files are small, so that some of them are complete when the source fails.
        DeltaTable.create(table, SCHEMA, configuration={"delta.targetFileSize": "1kb"})
    before = tree(tmp_path)
    with pytest.raises(
        deltalog.InvalidArgumentError, match=r"(?s)nothing was committed.*KeyError: 'my own words'"
    ):
        write_deltalake(table, failing(KeyError("my own words"), after), mode=mode)  # type: ignore[call-overload]
    assert tree(tmp_path) == before


def test_a_keyboard_interrupt_in_the_source_stays_a_keyboard_interrupt(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_deltalake(tmp_path / "t", failing(KeyboardInterrupt(), 3))
    assert tree(tmp_path) == {}


def required(table: Path) -> dict[str, bytes]:
    """Creates a table whose column must not be NULL, and returns its files."""
    DeltaTable.create(table, pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    return tree(table)


def test_an_interrupt_is_raised_even_if_rows_are_refused(tmp_path: Path) -> None:
    """If rows are refused and there is also an interrupt, the interrupt is raised. A loop that retries after errors
    could otherwise not be stopped with Ctrl-C.
    """
    before = required(tmp_path)

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": range(100_000)})
        yield pa.record_batch({"id": [None] * 50_000}, SCHEMA)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_deltalake(tmp_path, pa.RecordBatchReader.from_batches(SCHEMA, batches()), mode="append")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("rows_before", "most_asked"), [(0, 1), (200_000, 4)])
def test_a_refused_row_ends_the_reading_of_the_source(
    rows_before: int, most_asked: int, tmp_path: Path
) -> None:
    """The write fails as soon as a row is refused, without reading on, because the source may have no more rows for
    hours.
    """
    before, asked = required(tmp_path), 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal asked
        for start in range(0, rows_before, 100_000):
            asked += 1
            yield pa.record_batch({"id": range(start, start + 100_000)})
        while True:
            asked += 1
            yield pa.record_batch({"id": [None]}, SCHEMA)

    with pytest.raises(deltalog.SchemaMismatchError, match="NULL"):
        write_deltalake(tmp_path, pa.RecordBatchReader.from_batches(SCHEMA, batches()), mode="append")
    assert asked <= most_asked
    assert tree(tmp_path) == before


def test_a_source_is_read_on_the_thread_of_the_caller(tmp_path: Path) -> None:
    """The source is read on the caller's thread. Some sources, such as SQLite connections, can be used only on their
    own thread.
    """
    connection = sqlite3.connect(":memory:")

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 500_000, 50_000):
            ((first,),) = connection.execute("SELECT ?", (start,))
            yield pa.record_batch({"id": range(first, first + 50_000)})

    write_deltalake(tmp_path, pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    assert sorted(pa.table(DeltaTable(tmp_path).to_arrow())["id"].to_pylist()) == list(range(500_000))


def run(script: str, *arguments: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# The first source runs Python code, which notices signals itself. The second source never runs Python code.
SOURCES = {
    "a generator": """
        def batches():
            while True:
                yield batch
        data = pa.RecordBatchReader.from_batches(batch.schema, batches())
        """,
    "a table": "data = pa.Table.from_batches([batch] * 20_000)",
}


@pytest.mark.parametrize("source", SOURCES)
def test_an_interrupt_of_a_long_write_leaves_no_commit(source: str, tmp_path: Path) -> None:
    table = tmp_path / "t"
    DeltaTable.create(table, pa.schema([("id", pa.int64())]), configuration={"delta.targetFileSize": "1mb"})
    before = tree(table)
    script = """
        import signal, sys, pyarrow as pa, deltalog
        # A shell starts background processes without a handler for SIGINT.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        batch = pa.record_batch({"id": list(range(100_000))})
        SOURCE
        print("go", flush=True)
        try:
            deltalog.write_deltalake(sys.argv[1], data, mode="append")
        except KeyboardInterrupt:
            print("interrupted")
        """
    script = textwrap.dedent(script).replace("SOURCE", textwrap.dedent(SOURCES[source]).strip())
    process = run(script, table)
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    for _ in range(2000):
        if data_files(table):
            break
        signal.sigtimedwait([], 0.01)
    process.send_signal(signal.SIGINT)
    try:
        said, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert said == "interrupted\n", errors
    assert tree(table) == before


def test_memory_is_bounded(tmp_path: Path) -> None:
    """A write of 600 MB of incompressible rows needs less than a quarter of that in memory."""
    script = """
        import os, resource, sys, pyarrow as pa, deltalog
        MB = 1 << 20
        def batches():
            for number in range(150):
                data = pa.array([os.urandom(1024) for _ in range(4096)])
                yield pa.record_batch({"id": pa.array([number] * 4096, pa.int32()), "data": data})
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        next(batches())
        schema = pa.schema([("id", pa.int32()), ("data", pa.binary())])
        options = {"delta.targetFileSize": "32mb"}
        start = peak()
        source = pa.RecordBatchReader.from_batches(schema, batches())
        deltalog.write_deltalake(sys.argv[1], source, configuration=options)
        written = peak() - start
        table = deltalog.DeltaTable(sys.argv[1])
        rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(table.to_arrow()))
        print(rows, sum(pa.table(table.files(columns=["size"]))["size"].to_pylist()) // MB, written, peak() - start)
        """
    process = run(script, tmp_path / "t")
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    rows, stored, written, both = map(int, said.split())
    assert rows == 150 * 4096
    assert stored > 600
    assert written < 150
    assert both < 150


INNER = pa.struct([("b", pa.int32())])
DEEP: dict[str, tuple[pa.DataType, list[Any]]] = {
    "struct": (pa.struct([("a", INNER)]), [{"a": {"b": number}} for number in range(4)]),
    "three": (
        pa.struct([("a", pa.struct([("c", INNER)]))]),
        [{"a": {"c": {"b": number}}} for number in range(4)],
    ),
    "null": (pa.struct([("a", INNER)]), [None, {"a": None}, {"a": {"b": None}}, None]),
    "fixed list": (pa.list_(INNER, 2), [[{"b": number}, {"b": -number}] for number in range(4)]),
    "list": (pa.struct([("a", pa.list_(INNER))]), [{"a": [{"b": 0}] * number} for number in range(4)]),
    "in list": (pa.list_(pa.struct([("a", INNER)])), [[{"a": {"b": 0}}] * number for number in range(4)]),
    "map": (
        pa.map_(pa.string(), pa.struct([("a", INNER)])),
        [[("k", {"a": {"b": number}})] for number in range(4)],
    ),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("form", ["table", "batch", "reader", "chunks"])
def test_slices_of_nested_columns(tmp_path: Path, name: str, form: str) -> None:
    """Slices of nested arrays are written correctly. (arrow-rs counts the offset of such a slice twice.)"""
    data_type, values = DEEP[name]
    whole = pa.table({"id": range(4), "v": pa.array(values, data_type)})
    (batch,) = whole.slice(1, 2).to_batches()
    data = {
        "table": whole.slice(1, 2),
        "batch": batch,
        "reader": whole.slice(1, 2).to_reader(),
        "chunks": pa.table({"id": pa.chunked_array([[1], [2]]), "v": whole["v"].slice(1, 2)}),
    }[form]
    write_deltalake(tmp_path, data)
    assert pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist() == whole.slice(1, 2).to_pylist()
