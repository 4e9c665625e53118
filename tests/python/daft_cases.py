"""Tables as Daft frames. `test_workers.py` runs these tests in an environment with Daft."""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
from decimal import Decimal
from pathlib import Path
from typing import Any

import daft
import pyarrow as pa
import pytest
from daft import col

import deltalog.daft
from deltalog import DeltaTable, NotATableError, write_deltalake
from deltalog.daft_conditions import conjuncts

ROWS = pa.table(
    {
        "k": pa.array(range(8), pa.int64()),
        "i": pa.array([1, 2, None, -5, 2**40, 0, 7, 8], pa.int64()),
        "j": pa.array([1, 2, None, -5, 3, 0, 7, 8], pa.int32()),
        "d": pa.array([0.0, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 1e300]),
        "s": pa.array(["a", "b'\\c", None, "", "ß", "Ab", "%_", "\n"]),
        "b": pa.array([True, False, None, True, False, True, None, True]),
        "t": pa.array([None if n == 2 else dt.date(2024, 1, n + 1) for n in range(8)]),
        "u": pa.array([dt.datetime(2024, 1, 1, n) for n in range(8)], pa.timestamp("us", "UTC")),
        "x": pa.array(
            [Decimal("1.50"), Decimal("2.25"), None, *[Decimal("-3.00")] * 5], pa.decimal128(10, 2)
        ),
        "odd `name`": pa.array(list("abcdefgh")),
    }
)

# Filters that the scan evaluates completely. Daft evaluates them again.
EXACT = {
    "comparison": col("i") > 1,
    "turned": daft.lit(1) < col("i"),
    "narrow": col("j") != 3,
    "quote and backslash": col("s") == "b'\\c",
    "line break": col("s") == "\n",
    "is in": col("s").is_in(["a", "ß"]),
    "not in": ~col("i").is_in([1, 2]),
    "boolean": col("b"),
    "not": ~col("b"),
    "or": col("b") | (col("i") > 0),
    "date": col("t") > dt.date(2024, 1, 4),
    "decimal": col("x") == Decimal("2.25"),
    "between": col("i").between(0, 7),
    "null": col("i").is_null(),
    "not null": col("s").not_null(),
    "name": col("odd `name`") == "d",
}

# Filters with parts that only Daft evaluates.
OTHER = {
    "float": col("d") > 1.0,
    "zero": col("d") == 0.0,
    "nan": col("d").is_nan(),
    "arithmetic": col("i") + 1 > 2,
    "columns": col("i") == col("j"),
    "prefix": col("s").startswith("b'"),
    "time": col("u") > dt.datetime(2024, 1, 1, 4, tzinfo=dt.timezone.utc),
    "in part": (col("d") < 2) & (col("i") > 1) & (col("s") != "a"),
    "or with another": (col("d") < 2) | (col("i") > 1),
    "long chain": functools.reduce(operator.or_, [col("i") == n for n in range(150)]),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Creates a table with deletion vectors and column mapping."""
    place = str(tmp_path_factory.mktemp("daft") / "t")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    gone = ROWS.set_column(0, "k", pa.array(range(100, 108), pa.int64()))
    for start, end in ((0, 3), (3, 8)):
        rows = pa.concat_tables([ROWS[start:end], gone[start:end]])
        write_deltalake(place, rows, mode="append", configuration=properties)
    assert DeltaTable(place).delete("k >= 100")["numDeletedRows"] == 8
    return place


@pytest.mark.parametrize("name", [*EXACT, *OTHER])
def test_a_filter_selects_the_rows_that_daft_selects(path: str, name: str) -> None:
    condition = {**EXACT, **OTHER}[name]
    wanted = sorted(daft.from_arrow(ROWS).where(condition).to_pydict()["k"])
    assert sorted(deltalog.daft.read(path).where(condition).to_pydict()["k"]) == wanted
    assert sorted(deltalog.daft.read(path).where(condition).select("k").to_pydict()["k"]) == wanted
    assert len(conjuncts(condition, ROWS.schema)) == (name in EXACT or name == "long chain") + 2 * (
        name == "in part"
    )


def test_all_columns_and_values_arrive(path: str) -> None:
    found: Any = deltalog.daft.read(path).sort("k").to_arrow()
    assert repr(found.to_pylist()) == repr(ROWS.to_pylist())
    assert deltalog.daft.read(path).count_rows() == 8
    assert len(deltalog.daft.read(path).limit(3).to_pydict()["k"]) == 3


def test_files_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    for number in range(4):
        write_deltalake(place, pa.table({"k": [number * 10, number * 10 + 1]}), mode="append")
    frame = deltalog.daft.read(place)
    for uri in DeltaTable(place).file_uris("k < 20 OR k > 21"):
        Path(uri.removeprefix("file://")).unlink()
    kept = frame.where((col("k") >= 20) & (col("k") < 30) & (col("k") + 0 > 20))
    assert kept.to_pydict() == {"k": [21]}


def test_a_frame_keeps_its_version_and_is_written(path: str, tmp_path: Path) -> None:
    rows = deltalog.daft.read(path).where(col("k") < 3).select("k", "s").to_arrow()
    write_deltalake(tmp_path / "t", rows)
    table = DeltaTable(tmp_path / "t")
    frame = deltalog.daft.read(table)
    table.delete()
    assert (frame.count_rows(), deltalog.daft.read(table).count_rows()) == (3, 0)
    with pytest.raises(NotATableError, match="nowhere"):
        deltalog.daft.read(tmp_path / "nowhere")
