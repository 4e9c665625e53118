"""Table objects move between versions, and are pickled for other processes."""

from __future__ import annotations

import multiprocessing
import pickle
import shutil
import threading
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.table.handle import Opened


def ids(table: DeltaTable) -> list[int]:
    return sorted(pa.table(table.to_arrow())["id"].to_pylist())


def append(table: Path, number: int) -> None:
    write_deltalake(table, pa.table({"id": [number]}), mode="append")


class Slow:
    """A snapshot whose first refresh waits after it has read the log."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot
        self._first = True
        self.has_read, self.may_go_on = threading.Event(), threading.Event()

    def refresh(self, staged: Any) -> Any:
        first, self._first = self._first, False
        newest = self._snapshot.refresh(staged)
        if first:
            self.has_read.set()
            assert self.may_go_on.wait(60)
        return newest


def test_a_slow_thread_does_not_move_a_table_back(tmp_path: Path) -> None:
    append(tmp_path, 0)
    table = DeltaTable(tmp_path)
    slow = Slow(table._snapshot)
    table._opened = Opened(slow, 0)  # type: ignore[arg-type]
    append(tmp_path, 1)
    thread = threading.Thread(target=table.update_incremental)
    thread.start()
    assert slow.has_read.wait(60)
    append(tmp_path, 2)
    table.update_incremental()
    assert table.version() == 2
    slow.may_go_on.set()
    thread.join(60)
    assert (table.version(), ids(table)) == (2, [0, 1, 2])


def test_load_as_version(tmp_path: Path) -> None:
    for number in range(3):
        append(tmp_path, number)
    table = DeltaTable(tmp_path)
    times = [entry["timestamp"] for entry in reversed(table.history())]
    table.load_as_version(0)
    assert (table.version(), ids(table)) == (0, [0])
    table.load_as_version(datetime.fromtimestamp(times[1] / 1000, timezone.utc))
    assert ids(table) == ([0, 1] if times[1] < times[2] else [0, 1, 2])
    table.load_as_version(datetime.fromtimestamp(times[2] / 1000, timezone.utc).isoformat())
    assert ids(table) == [0, 1, 2]
    table.load_as_version(1)
    for wrong in (3, "1999-01-01T00:00:00Z"):
        with pytest.raises(deltalog.VersionNotFoundError, match=r"readable|before"):
            table.load_as_version(wrong)
    for none in (-1, True, None, 1.0):
        with pytest.raises(deltalog.InvalidArgumentError, match="version"):
            table.load_as_version(none)  # type: ignore[arg-type]
    assert (table.version(), ids(table)) == (1, [0, 1])
    table.update_incremental()
    assert table.version() == 2


def test_load_as_version_keeps_allowed_roots(tmp_path: Path) -> None:
    (tmp_path / "roots").mkdir()
    append(tmp_path / "table", 0)
    append(tmp_path / "table", 1)
    table = DeltaTable(tmp_path / "table", allowed_roots=[tmp_path / "roots"])
    table.load_as_version(0)
    assert table._snapshot.allowed_roots == [(tmp_path / "roots").as_uri()]
    copy = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert copy._snapshot.allowed_roots == table._snapshot.allowed_roots


def test_a_pickled_table_is_at_its_version(tmp_path: Path) -> None:
    append(tmp_path, 0)
    append(tmp_path, 1)
    table = DeltaTable(tmp_path, version=0)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(ids, table).result(120) == [0]
    copy = pickle.loads(pickle.dumps(table))  # noqa: S301
    copy.update_incremental()
    assert (copy.version(), ids(copy), table.version()) == (1, [0, 1], 0)


def test_a_table_that_was_replaced_is_not_the_pickled_one(tmp_path: Path) -> None:
    """A pickled table cannot be opened if another table has replaced it, whether that table has the same number of
    versions or fewer.
    """
    path = tmp_path / "table"
    append(path, 0)
    append(path, 1)
    first, second = (pickle.dumps(DeltaTable(path, version=version)) for version in (0, 1))
    shutil.rmtree(path)
    append(path, 7)
    for version, pickled in enumerate((first, second)):
        with pytest.raises(deltalog.TableReplacedError, match="was dropped") as caught:
            pickle.loads(pickled)  # noqa: S301
        assert (caught.value.table, caught.value.version) == (path.as_uri(), version)
    shutil.rmtree(path)
    with pytest.raises(deltalog.NotATableError):
        pickle.loads(first)  # noqa: S301


def test_a_table_with_staged_commits_is_not_pickled() -> None:
    table = DeltaTable.__new__(DeltaTable)
    table._has_catalog = True
    with pytest.raises(deltalog.UnsupportedFeatureError, match="staged commits cannot be pickled"):
        pickle.dumps(table)


def test_errors_and_schemas_can_be_pickled(tmp_path: Path) -> None:
    with pytest.raises(deltalog.NotATableError) as caught:
        DeltaTable(tmp_path / "none")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert isinstance(copy, deltalog.NotATableError)
    assert (str(copy), copy.table, copy.hint) == (str(caught.value), caught.value.table, caught.value.hint)
    append(tmp_path, 0)
    schema = DeltaTable(tmp_path).schema()
    assert pickle.loads(pickle.dumps(schema)) == schema  # noqa: S301
    assert pickle.loads(pickle.dumps(schema.fields)) == schema.fields  # noqa: S301
