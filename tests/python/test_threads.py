"""Threads, forked processes, and the cost of an import."""

from __future__ import annotations

import ast
import importlib
import multiprocessing
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

DATA = pa.table({"id": range(10_000), "text": [str(number) for number in range(10_000)]})


def test_threads_read_and_write_at_once(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA.slice(0, 0))
    shared = DeltaTable(tmp_path)

    def write(number: int) -> int:
        data = pa.table({"id": pa.array([number] * 100), "text": ["x"] * 100})
        return write_deltalake(tmp_path, data, mode="append")

    def read(_: int) -> int:
        shared.update_incremental()
        return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(shared.to_arrow()))

    with ThreadPoolExecutor(8) as pool:
        versions = [pool.submit(write, number) for number in range(24)]
        counts = [pool.submit(read, number) for number in range(24)]
        assert sorted(version.result(120) or 0 for version in versions) == list(range(1, 25))
        # A read never sees a part of a commit.
        assert all(count.result(120) % 100 == 0 for count in counts)
    shared.update_incremental()
    found = Counter(pa.table(shared.to_arrow())["id"].to_pylist())
    assert found == dict.fromkeys(range(24), 100)


def test_other_threads_run_while_we_read_and_write(tmp_path: Path) -> None:
    """The source of a write waits for another thread, which can run only if the write has released the interpreter
    lock.
    """
    ticks = threading.Event()

    def batches() -> object:
        yield DATA.to_batches()[0]
        # Another thread must be able to run to set this event.
        assert ticks.wait(60)
        yield DATA.to_batches()[0]

    threading.Timer(0.05, ticks.set).start()
    write_deltalake(tmp_path, pa.RecordBatchReader.from_batches(DATA.schema, batches()))
    assert pa.table(DeltaTable(tmp_path).to_arrow()).num_rows == 2 * DATA.num_rows


def test_many_threads_share_a_table(tmp_path: Path) -> None:
    for _ in range(4):
        write_deltalake(tmp_path, DATA, mode="append", partition_by=None)
    table = DeltaTable(tmp_path)
    barrier = threading.Barrier(32)

    def ask(number: int) -> tuple[int, int, int]:
        barrier.wait(60)
        count = pa.table(table.to_arrow(["id"], f"id = {number}")).num_rows
        return count, len(table.file_uris()), len(table.history())

    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(ask, range(32))) == [(4, 4, 4)] * 32


def test_only_one_of_many_threads_gets_a_stream(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    stream = DeltaTable(tmp_path).to_arrow()

    def take(_: int) -> int:
        try:
            return int(pa.table(stream).num_rows)
        except ValueError:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(take, range(8))) == [0] * 7 + [DATA.num_rows]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child(tmp_path: Path) -> None:
    """A forked child can open, read and write tables after its parent has done so. Workers of Spark and PyTorch do
    this.
    """
    script = """
import os, sys, threading, pyarrow as pa, deltalog
path = sys.argv[1]
pa.set_cpu_count(1)
data = pa.table({"id": range(1000)})
for _ in range(4):
    deltalog.write_deltalake(path, data, mode="append")
table = deltalog.DeltaTable(path)
def rows(stream):
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))
assert rows(table.to_arrow()) == 4000
begun = table.to_arrow()
child = os.fork()
if child == 0:
    status = 1
    try:
        assert rows(table.to_arrow(predicate="id < 10")) == 40
        assert rows(deltalog.DeltaTable(path).to_arrow()) == 4000
        assert deltalog.write_deltalake(path, data, mode="append") == 4
        table.update_incremental()
        assert rows(table.to_arrow()) == 5000
        status = 0
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert rows(begun) == 4000
table.update_incremental()
assert rows(table.to_arrow()) == 5000
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "t"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_an_import_loads_no_other_library() -> None:
    script = """
import sys, time
start = time.process_time()
import deltalog
took = time.process_time() - start
heavy = ("pyarrow", "pyspark", "pandas", "polars", "duckdb", "numpy", "deltalog.spark")
print(*[name for name in heavy if name in sys.modules])
assert took < 1, took
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, ""), ran.stdout + ran.stderr


def test_names_are_the_same_for_type_checkers_and_at_run_time() -> None:
    """Modules are imported only when one of their names is used, so type checkers get the names from separate imports.
    Both must have the same names.
    """
    source = ast.parse(Path(deltalog.__file__).read_text("utf-8"))
    (checked,) = [
        node for node in source.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: node.module or "" for node in imports for alias in node.names}
    assert set(deltalog.__all__) == set(places) <= set(dir(deltalog))
    for name, module in places.items():
        assert getattr(deltalog, name) is getattr(importlib.import_module(module), name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = deltalog.nothing  # type: ignore[attr-defined]


def test_every_module_can_be_the_first_one() -> None:
    """Each module can be imported first. None needs another module to be imported before it."""
    modules = [f"deltalog.{module}" for module in (*deltalog._MODULES, *deltalog._NAMES)]
    program = "import sys; from importlib import import_module; import_module(sys.argv[1])"
    for module in sorted({*modules, "deltalog.table.rows", "deltalog.interrupts", "deltalog.cli"}):
        subprocess.run([sys.executable, "-c", program, module], check=True, timeout=60)


def test_a_process_of_multiprocessing_does_the_upkeep_of_its_commits() -> None:
    """A process of `multiprocessing` may end without waiting for threads, so its commits do their background work
    themselves.
    """
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        assert pool.apply(_imported_upkeep)


def _imported_upkeep() -> bool:
    """Returns whether importing the package has also imported `upkeep`."""
    return "deltalog.upkeep" in sys.modules
