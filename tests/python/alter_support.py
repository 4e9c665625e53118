"""Helpers for tests that change a table's definition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.python.place import actions, tree

NUMBERS = pa.table({"id": pa.array([3], pa.int64())})


def rows(table: DeltaTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(DeltaTable(table.table_uri).to_arrow()).to_pylist()
    return found


def created(path: Path, data: pa.Table | None = None, **options: Any) -> DeltaTable:
    """Creates a table with two columns and two rows."""
    if data is None:
        data = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", None]})
    write_deltalake(path, data, **options)
    return DeltaTable(path)


def action(path: Path, version: int, name: str) -> dict[str, Any]:
    (found,) = [line[name] for line in actions(path, version) if name in line]
    return dict(found)


@contextmanager
def refused(path: Path, error: type[Exception] | tuple[type[Exception], ...], match: str) -> Iterator[None]:
    """Checks that the body of the `with` raises the error, and changes no file of the table."""
    before = tree(path)
    with pytest.raises(error, match=match):
        yield
    assert tree(path) == before
