"""Arrow decimal types that tables do not have, because they have more than 38 digits or a negative scale.

Protocol: "Primitive Types".
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import (
    DeltaTable,
    Field,
    SchemaMismatchError,
    UnsupportedFeatureError,
    begin_write,
    write_deltalake,
)
from tests.python.place import data_files

WIDE, NEGATIVE = pa.decimal256(60, 10), pa.decimal128(9, -2)
# Each entry has the type of a column, the type of the data, a value that fits the column, and a value that does not.
VALUES: list[tuple[pa.DataType, pa.DataType, str, str]] = [
    (pa.decimal128(38, 10), WIDE, "9" * 28 + "." + "9" * 10, "1" + "0" * 28),
    (pa.decimal128(10, 2), WIDE, "-99999999.25", "0.125"),
    (pa.decimal128(38, 0), pa.decimal256(40, 0), "9" * 38, "1" + "0" * 38),
    (pa.int64(), pa.decimal256(40, 0), str(-(2**63)), str(2**63)),
    (pa.float64(), pa.decimal256(40, 0), str(2**53), str(2**53 + 1)),
    (pa.decimal128(38, 2), pa.decimal128(38, -2), "1200", "1" + "0" * 36),
    (pa.decimal128(6, 2), NEGATIVE, "-9900", "10000"),
    (pa.int16(), NEGATIVE, "32700", "32800"),
    (pa.float32(), NEGATIVE, "16777200", "67108900"),
    (pa.float64(), pa.decimal32(9, -5), "2900000", "0"),
]


def column(values: list[str | None], kind: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], kind)


def found(path: Path) -> list[Any]:
    values: list[Any] = pa.table(DeltaTable(path).to_arrow())["c"].to_pylist()
    return values


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize(("to", "kind", "fits", "other"), VALUES)
def test_each_value_is_checked_for_an_existing_column(
    tmp_path: Path, to: pa.DataType, kind: pa.DataType, fits: str, other: str, opened: bool
) -> None:
    table = DeltaTable.create(tmp_path, pa.schema({"c": to}))
    target: Any = table if opened else tmp_path
    given = pa.table({"C": column([fits, None], kind)})
    write_deltalake(target, given, mode="append")
    write_deltalake(target, given, mode="append", schema_mode="merge")
    assert found(tmp_path) == [Decimal(fits), None] * 2
    write_deltalake(target, given, mode="overwrite")
    assert found(tmp_path) == [Decimal(fits), None]
    before = data_files(tmp_path)
    if other != "0":
        with pytest.raises(
            SchemaMismatchError, match=rf"column 'c' has the value {other}\.?0* of type"
        ) as refused:
            write_deltalake(target, pa.table({"c": column([fits, other], kind)}), mode="append")
        assert re.search(rf"of type decimal\({kind.precision},{kind.scale}\), which ", str(refused.value))
    assert (data_files(tmp_path), DeltaTable(tmp_path).version()) == (before, 3)
    assert pa.schema(DeltaTable(tmp_path).schema()).field("c").type == to


def test_nested_values_and_files_of_several_tasks(tmp_path: Path) -> None:
    def schema(decimal: pa.DataType) -> pa.Schema:
        pairs = pa.map_(pa.string(), decimal)
        return pa.schema({"l": pa.list_(pa.struct({"a": decimal})), "m": pairs, "d": decimal})

    value = Decimal("12.5")
    rows = [{"l": [{"a": value}, {"a": None}], "m": [("x", value)], "d": value}]
    given = pa.Table.from_pylist(rows, schema(WIDE))
    table = DeltaTable.create(tmp_path, schema(pa.decimal128(5, 2)))
    write_deltalake(table, given, mode="append")
    with begin_write(table, mode="append") as write:
        write.commit([write.task.write(given)])
    assert pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist() == rows * 2


@pytest.mark.parametrize(
    ("kind", "said"),
    [(WIDE, r"Decimal256\(60, 10\)"), (pa.decimal128(38, -2), r"Decimal128\(38, -2\)")],
    ids=str,
)
def test_a_new_column_with_too_many_digits_is_refused(tmp_path: Path, kind: pa.DataType, said: str) -> None:
    said = rf"column 'c' has the Arrow type {said}, but decimals of a table have at most 38 digits"
    given = pa.table({"k": [1], "c": column(["1200"], kind)})
    with pytest.raises(UnsupportedFeatureError, match=said) as refused:
        write_deltalake(tmp_path / "new", given)
    assert "create the column with such a type first" in str(refused.value.hint)
    assert not (tmp_path / "new").exists()
    with pytest.raises(UnsupportedFeatureError, match=said):
        DeltaTable.create(tmp_path / "new", given.schema)
    table = DeltaTable.create(tmp_path / "t", pa.schema({"k": pa.int64()}))
    ways: list[dict[str, Any]] = [
        {"mode": "append", "schema_mode": "merge"},
        {"mode": "overwrite", "schema_mode": "overwrite"},
    ]
    for options in ways:
        for target in (table, tmp_path / "t"):
            with pytest.raises(UnsupportedFeatureError, match=said):
                write_deltalake(target, given, **options)
    table.alter.add_columns([Field("c", "decimal(38,0)")])
    with pytest.raises(UnsupportedFeatureError, match=said):
        write_deltalake(table, given, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(UnsupportedFeatureError, match=said):
        table.merge(given, "target.k = source.k").when_not_matched_insert_all().execute()
    assert DeltaTable(tmp_path / "t").count() == 0


@pytest.mark.parametrize("digits", [5, 15])
def test_values_with_more_digits_than_their_type_are_refused(tmp_path: Path, digits: int) -> None:
    """pyarrow can make such values. Parquet has too few bytes for them, so other values would be stored."""
    kind = pa.decimal128(digits, 2)
    value = pa.py_buffer((10**20).to_bytes(16, "little"))
    given = pa.table({"c": pa.Array.from_buffers(kind, 1, [None, value])})
    table = DeltaTable.create(tmp_path, given.schema)
    nested = pa.table({"c": pa.StructArray.from_arrays([given["c"].chunk(0)], ["d"])})
    said = rf"has a value of type decimal\({digits},2\), which does not fit"
    with pytest.raises(SchemaMismatchError, match=said):
        write_deltalake(table, given, mode="append")
    with pytest.raises(SchemaMismatchError, match=said):
        write_deltalake(table, nested, mode="overwrite", schema_mode="overwrite")
    with begin_write(table, mode="append") as write, pytest.raises(SchemaMismatchError, match=said):
        write.task.write(given)
    assert (DeltaTable(tmp_path).version(), DeltaTable(tmp_path).count()) == (0, 0)
