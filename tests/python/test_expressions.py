"""Predicates that compute: `to_arrow`, `count` and the file list agree with the same condition in Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError, InvalidArgumentError

Row = dict[str, Any]

ROWS: list[Row] = [
    {
        "id": n,
        "day": date(2024, 1, 1) + timedelta(days=n * 11),
        "name": None if n % 7 == 0 else f"{'Ab' if n % 2 else 'c'}{n}",
        "price": n * 0.25 - 2,
        "at": datetime(2024, 1, 1, n % 24, 30, tzinfo=timezone.utc) + timedelta(days=n),
        "o": None if n % 5 == 0 else {"x": n % 4},
    }
    for n in range(40)
]
SCHEMA = pa.schema(
    {
        "id": pa.int32(),
        "day": pa.date32(),
        "name": pa.string(),
        "price": pa.float64(),
        "at": pa.timestamp("us", "UTC"),
        "o": pa.struct({"x": pa.int32()}),
    }
)

CONDITIONS: list[tuple[str, Callable[[Row], bool | None]]] = [
    ("id + 1 > 20", lambda row: row["id"] + 1 > 20),
    ("id % 3 = 1 AND id / 2 < 10", lambda row: row["id"] % 3 == 1 and row["id"] / 2 < 10),
    ("month(day) IN (2, 3)", lambda row: row["day"].month in (2, 3)),
    (
        "month(day) = 2 OR upper(name) LIKE 'AB1%'",
        lambda row: row["day"].month == 2 or (row["name"] or "").upper().startswith("AB1"),
    ),
    ("length(name) > 2", lambda row: row["name"] is not None and len(row["name"]) > 2),
    ("coalesce(name, 'none') = 'none'", lambda row: row["name"] is None),
    ("CASE WHEN id < 10 THEN 'a' WHEN id < 20 THEN 'b' END = 'b'", lambda row: 10 <= row["id"] < 20),
    ("CASE WHEN id < 10 THEN 'a' END IS NULL", lambda row: row["id"] >= 10),
    ("id <> 0 AND 100 DIV id > 9", lambda row: row["id"] != 0 and 100 // row["id"] > 9),
    ("round(price) = 1", lambda row: 0.5 <= row["price"] < 1.5),
    ("CAST(price AS INT) = 0", lambda row: -1 < row["price"] < 1),
    ("hour(at) >= 12", lambda row: row["at"].hour >= 12),
    ("date_format(at, 'MM-dd') = '01-03'", lambda row: (row["at"].month, row["at"].day) == (1, 3)),
    ("CAST(at AS DATE) = date_add(DATE '2024-01-01', 5)", lambda row: row["at"].date() == date(2024, 1, 6)),
    ("o.x + 1 = 2", lambda row: row["o"] is not None and row["o"]["x"] == 1),
    ("name || id = 'Ab11'", lambda row: f"{row['name']}{row['id']}" == "Ab11"),
    ("(id > 5) = (id > 30)", lambda row: (row["id"] > 5) == (row["id"] > 30)),
    ("id = 2 * 3 + 1", lambda row: row["id"] == 7),
]


@pytest.fixture(scope="module", params=[[], ["day"], ["id"]], ids=["plain", "by day", "by id"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = tmp_path_factory.mktemp("expressions") / "table"
    for start in range(0, len(ROWS), 10):
        rows = pa.Table.from_pylist(ROWS[start : start + 10], SCHEMA)
        write_deltalake(path, rows, mode="append", partition_by=request.param or None)
    return DeltaTable(path)


@pytest.mark.parametrize(("sql", "condition"), CONDITIONS, ids=[sql for sql, _ in CONDITIONS])
def test_rows_are_those_for_which_the_condition_is_true(
    table: DeltaTable, sql: str, condition: Callable[[Row], bool | None]
) -> None:
    wanted = sorted(row["id"] for row in ROWS if condition(row))
    assert sorted(pa.table(table.to_arrow(["id"], sql))["id"].to_pylist()) == wanted
    assert table.count(sql) == len(wanted)
    negated = f"NOT coalesce({sql}, FALSE)"
    assert table.count(negated) == len(ROWS) - len(wanted)


def test_computed_conditions_on_partition_columns_skip_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS, SCHEMA), partition_by=["day"])
    table = DeltaTable(tmp_path)
    days = sorted({row["day"] for row in ROWS if row["day"].month == 2})
    partitions = table.partitions("month(day) = 2")
    assert sorted(str(partition["day"]) for partition in partitions) == [str(day) for day in days]
    assert len(table.file_uris("month(day) = 2")) == len(days) < len(table.file_uris())
    # The value of a constant is known before any file is.
    assert len(table.file_uris("day = date_add(DATE '2024-01-01', 22 - 11)")) == 1
    # An error is one of a row, so the files are kept.
    assert len(table.file_uris("1 DIV (month(day) - 2) = 5")) == len(table.file_uris())


def test_a_row_without_a_value_is_an_error(table: DeltaTable) -> None:
    for sql in ["1 DIV id = 1", "id + 2147483647 > 0", "CAST(name AS INT) = 1"]:
        with pytest.raises((DeltaError, pa.ArrowException), match="has no value for"):
            pa.table(table.to_arrow(predicate=sql))


def test_what_cannot_be_computed_is_refused_by_name(table: DeltaTable) -> None:
    for sql, part in [
        ("soundex(name) = 'a'", "soundex"),
        ("name + 1 = 2", "STRING, INT"),
        ("upper(id) = 'A'", r"upper\(id\)"),
        ("CAST(price AS STRING) = '1'", "DOUBLE to STRING"),
        ("id + 1", "not a condition"),
        ("o = o", "cannot be compared"),
    ]:
        with pytest.raises(InvalidArgumentError, match=part):
            table.to_arrow(predicate=sql)
