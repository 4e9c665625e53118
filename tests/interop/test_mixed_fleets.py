"""Checks the statements about `deltalake` in docs/moving/mixed-fleets.md. If a test fails with a new release, the page
is outdated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import deltalog

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def ids(path: Path) -> list[int]:
    found: list[int] = pa.table(deltalog.DeltaTable(path).to_arrow())["id"].to_pylist()
    return sorted(found)


def small_files(path: Path) -> None:
    for part in (ROWS[:1], ROWS[1:]):
        deltalog.write_deltalake(path, part, mode="append")


@pytest.mark.parametrize(
    "overtakes",
    [
        pytest.param(lambda path: deltalog.DeltaTable(path).optimize.compact(), id="ours"),
        pytest.param(lambda path: deltalake.DeltaTable(path).optimize.compact(), id="theirs"),
    ],
)
def test_an_optimize_that_is_overtaken_by_another(
    tmp_path: Path, overtakes: Callable[[Path], object]
) -> None:
    small_files(tmp_path)
    late = deltalake.DeltaTable(tmp_path)
    overtakes(tmp_path)
    late.optimize.compact()
    assert ids(tmp_path) == [1, 1, 2, 2]


def test_our_optimize_that_is_overtaken_finds_the_new_file(tmp_path: Path) -> None:
    small_files(tmp_path)
    late = deltalog.DeltaTable(tmp_path)
    deltalake.DeltaTable(tmp_path).optimize.compact()
    late.optimize.compact()
    assert ids(tmp_path) == [1, 2]


def test_an_overwrite_leaves_rows_that_it_has_not_seen(tmp_path: Path) -> None:
    small_files(tmp_path)
    theirs, ours = deltalake.DeltaTable(tmp_path), deltalog.DeltaTable(tmp_path)
    deltalog.write_deltalake(tmp_path, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
    with pytest.raises(deltalog.CommitConflictError):
        deltalog.write_deltalake(ours, ROWS, mode="overwrite")
    deltalake.write_deltalake(theirs, ROWS, mode="overwrite")
    assert ids(tmp_path) == [1, 2, 3]
