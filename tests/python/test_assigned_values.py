"""UPDATE and MERGE store columns and literals unchanged, or refuse them. A struct must have all fields of its
column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, InvalidArgumentError, SchemaMismatchError, write_deltalake
from deltalog.table.merge import TableMerger
from tests.python.place import tree

INT = pa.int32()
BOTH = pa.struct([("a", INT), ("b", INT)])
LACKING = pa.struct([("a", INT)])
TURNED = pa.struct([("b", INT), ("a", INT)])
UTC = dt.timezone.utc

VERBS: dict[str, Callable[[TableMerger[Any]], Any]] = {
    "update all": lambda merge: merge.when_matched_update_all().execute(),
    "update": lambda merge: merge.when_matched_update({"v": "source.v"}).execute(),
    "insert all": lambda merge: merge.when_not_matched_insert_all().execute(),
    "insert": lambda merge: merge.when_not_matched_insert({"k": "source.k", "v": "source.v"}).execute(),
}


def table_of(path: Path, value: Any, kind: pa.DataType) -> DeltaTable:
    return write_of(path, pa.table({"k": [1], "v": pa.array([value], kind)}))


def write_of(path: Path, rows: pa.Table) -> DeltaTable:
    write_deltalake(path, rows)
    return DeltaTable(path)


def merging(table: DeltaTable, value: Any, kind: pa.DataType, verb: str) -> TableMerger[Any]:
    key = 1 if verb.startswith("update") else 2
    return table.merge(pa.table({"k": [key], "v": pa.array([value], kind)}), "target.k = source.k")


def values(table: DeltaTable) -> dict[int, Any]:
    return {row["k"]: row["v"] for row in pa.table(DeltaTable(table.table_uri).to_arrow()).to_pylist()}


STRUCTS: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any], str]] = {
    "plain": (lambda kind: kind, lambda value: value, "v.b"),
    "in an array": (pa.list_, lambda value: [value], "v.element.b"),
    "in a map": (lambda kind: pa.map_(pa.string(), kind), lambda value: [("x", value)], "v.value.b"),
    "in a struct": (lambda kind: pa.struct([("s", kind)]), lambda value: {"s": value}, "v.s.b"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("place", STRUCTS)
def test_a_struct_that_lacks_a_field_is_not_assigned(tmp_path: Path, place: str, verb: str) -> None:
    kind, value, path = STRUCTS[place]
    table = table_of(tmp_path, value({"a": 1, "b": 2}), kind(BOTH))
    before = tree(tmp_path)
    with pytest.raises(SchemaMismatchError, match=f"the field '{path}' is missing") as refused:
        VERBS[verb](merging(table, value({"a": 5}), kind(LACKING), verb))
    assert "may be NULL" in str(refused.value.hint)
    assert tree(tmp_path) == before
    # Fields are found by their names, regardless of their order.
    VERBS[verb](merging(table, value({"b": 6, "a": 5}), kind(TURNED), verb))
    assert values(table)[1 if verb.startswith("update") else 2] == value({"a": 5, "b": 6})
    # An append, in contrast, sets a missing field to NULL.
    write_deltalake(
        tmp_path, pa.table({"k": [3], "v": pa.array([value({"a": 7})], kind(LACKING))}), mode="append"
    )
    assert values(table)[3] == value({"a": 7, "b": None})


def test_a_column_of_the_table_that_lacks_a_field_is_not_assigned(tmp_path: Path) -> None:
    rows = {"v": pa.array([{"a": 1, "b": 2}], BOTH), "w": pa.array([{"a": 3}], LACKING)}
    table = write_of(tmp_path, pa.table(rows))
    with pytest.raises(SchemaMismatchError, match=r"'v\.b' is missing"):
        table.update({"v": "w"})
    with pytest.raises(SchemaMismatchError, match=r"no column 'w\.b'"):
        table.update({"w": "v"})


def money(text: str) -> Decimal:
    return Decimal(text)


# Values that an append refuses. Assigning a column of the source with such a value is refused as well.
# Each entry has a value, the value's type, and the table's type.
CHANGED: dict[str, tuple[Any, pa.DataType, pa.DataType]] = {
    "digits": (money("2.5001"), pa.decimal128(10, 4), pa.decimal128(10, 2)),
    "a fraction": (money("2.50"), pa.decimal128(10, 2), pa.int64()),
    "a floating-point number": (2.5, pa.float64(), pa.decimal128(10, 2)),
    "a long as double": (2**53 + 1, pa.int64(), pa.float64()),
    "the largest long as double": (2**63 - 1, pa.int64(), pa.float64()),
    "an integer as float": (2**24 + 1, pa.int32(), pa.float32()),
    "a double as float": (0.1, pa.float64(), pa.float32()),
    "a time as date": (dt.datetime(2024, 1, 31, 12, tzinfo=UTC), pa.timestamp("us", "UTC"), pa.date32()),
    "a number as text": (1, pa.int64(), pa.string()),
    "text as date": ("2024-01-31", pa.string(), pa.date32()),
    "nanoseconds": (1, pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
    "a number that is too large": (300, pa.int64(), pa.int8()),
    "an unsigned number that is too large": (2**63, pa.uint64(), pa.int64()),
}
# Both an append and an assignment accept these values. Each entry also has the value that is stored.
STORED: dict[str, tuple[Any, pa.DataType, pa.DataType, Any]] = {
    "zeros": (money("2.5000"), pa.decimal128(10, 4), pa.decimal128(10, 2), money("2.50")),
    "a long as double": (2**53, pa.int64(), pa.float64(), float(2**53)),
    "the smallest long as double": (-(2**63), pa.int64(), pa.float64(), -float(2**63)),
    "an integer as float": (-(2**24), pa.int32(), pa.float32(), -float(2**24)),
    "a date": (
        dt.date(2024, 2, 29), pa.date32(), pa.timestamp("us", "UTC"), dt.datetime(2024, 2, 29, tzinfo=UTC)
    ),
    "a date before 1970": (
        dt.date(1, 1, 1), pa.date32(), pa.timestamp("us", "UTC"), dt.datetime(1, 1, 1, tzinfo=UTC)
    ),
    "a date as time without a zone": (
        dt.date(2024, 2, 29), pa.date64(), pa.timestamp("us"), dt.datetime(2024, 2, 29)
    ),
    "an unsigned number": (2**63 - 1, pa.uint64(), pa.int64(), 2**63 - 1),
    "a dictionary": ("x", pa.dictionary(pa.int8(), pa.string()), pa.string(), "x"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_a_column_that_would_change_is_refused_as_an_append_refuses_it(tmp_path: Path, name: str) -> None:
    value, kind, column = CHANGED[name]
    table = table_of(tmp_path, None, column)
    before = tree(tmp_path)
    for verb, run in VERBS.items():
        with pytest.raises(SchemaMismatchError, match="column 'v'"):
            run(merging(table, value, kind, verb))
    with pytest.raises(SchemaMismatchError, match="column 'v'"):
        write_deltalake(tmp_path, pa.table({"k": [3], "v": pa.array([value], kind)}), mode="append")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", STORED)
def test_a_column_that_fits_is_stored(tmp_path: Path, name: str) -> None:
    value, kind, column, stored = STORED[name]
    table = table_of(tmp_path, None, column)
    write_deltalake(tmp_path, pa.table({"k": [3], "v": pa.array([value], kind)}), mode="append")
    table.update_incremental()
    for verb in ("update all", "insert"):
        VERBS[verb](merging(table, value, kind, verb))
    assert values(table) == dict.fromkeys([1, 2, 3], stored)
    kept = write_of(
        tmp_path / "update", pa.table({"v": pa.array([None], column), "w": pa.array([value], kind)})
    )
    kept.update({"v": "w"})
    assert pa.table(DeltaTable(tmp_path / "update").to_arrow())["v"].to_pylist() == [stored]


def test_a_date_that_no_timestamp_has_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path, None, pa.timestamp("us", "UTC"))
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    for write in (
        lambda rows: write_deltalake(table, rows, mode="append"),
        lambda rows: table.merge(rows, "target.k = source.k").when_not_matched_insert_all().execute(),
    ):
        with pytest.raises(SchemaMismatchError, match="does not fit type"):
            write(pa.table({"k": [2], "v": far}))


def test_a_literal_that_would_change_is_refused_and_a_computed_value_is_rounded(tmp_path: Path) -> None:
    columns = {
        "price": pa.array([Decimal("2.00")], pa.decimal128(10, 2)),
        "n": pa.array([1], pa.int64()),
        "day": pa.array([None], pa.date32()),
        "f": pa.array([0.0], pa.float32()),
    }
    table = write_of(tmp_path, pa.table(columns))
    before = tree(tmp_path)
    for column, sql in {
        "price": "2.5001", "n": "1.5", "day": "TIMESTAMP '2024-01-31 12:00:00'",
    }.items():  # fmt: skip
        with pytest.raises(SchemaMismatchError, match="would be changed to fit type") as refused:
            table.update({column: sql})
        assert f"CAST({sql} AS " in str(refused.value.hint)
    with pytest.raises(SchemaMismatchError, match="would be changed"):
        table.update({"n": "-1.5e0"})
    with pytest.raises(SchemaMismatchError, match="would be changed"):
        table.update(new_values={"price": 2.5001})
    assert tree(tmp_path) == before
    table.update({"price": "price * 1.2525", "n": "CAST(1.5 AS BIGINT)", "f": "0.1", "day": "'2024-01-31'"})
    [row] = pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist()
    assert row == {
        "price": Decimal("2.51"), "n": 1, "f": pytest.approx(0.1), "day": dt.date(2024, 1, 31),
    }  # fmt: skip
    table.update({"price": "2.5000", "n": "3.0", "day": "TIMESTAMP '2024-02-29 00:00:00'"})
    [row] = pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist()
    assert (row["price"], row["n"], row["day"]) == (Decimal("2.50"), 3, dt.date(2024, 2, 29))


def test_columns_that_only_the_source_has_are_left_out_of_all(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a", pa.string())
    source = pa.table({"k": [1, 2], "loaded_at": [0, 0], "V": ["x", "y"], "v2": [None, None]})
    merge = table.merge(source, "target.k = source.k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    assert values(table) == {1: "x", 2: "y"}
    # Clauses may use columns that only the source has, and may list them as excluded.
    merge = table.merge(source, "target.k = source.k")
    merge.when_matched_update_all("source.loaded_at = 0", except_cols=["loaded_at", "V"]).execute()
    assert values(table) == {1: "x", 2: "y"}
    with pytest.raises(InvalidArgumentError, match="no column 'missing' that could be left out"):
        table.merge(source, "target.k = source.k").when_matched_update_all(except_cols=["missing"]).execute()
    only = pa.table({"other": [1]})
    with pytest.raises(InvalidArgumentError, match="assigns no column"):
        table.merge(only, "target.k = source.other").when_matched_update_all().execute()


def test_a_name_with_a_dot_is_assigned_in_backticks(tmp_path: Path) -> None:
    configuration = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, pa.table({"a.b": [1], "c": [2]}), configuration=configuration)
    table = DeltaTable(tmp_path)
    assigned: list[dict[str, Any]] = [{"updates": {"a.b": "3"}}, {"new_values": {"a.b": 3}}]
    for arguments in assigned:
        with pytest.raises(InvalidArgumentError, match=r"no column a\.b to assign") as refused:
            table.update(**arguments)
        assert refused.value.hint == "a name with a dot is written in backticks: `a.b`"
    table.update(new_values={"`a.b`": 3})
    assert pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist() == [{"a.b": 3, "c": 2}]
