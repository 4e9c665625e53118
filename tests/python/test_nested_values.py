"""UPDATE and MERGE can assign arrays, structs, maps and NULL, both as SQL and as Python values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, InvalidArgumentError, Schema, SchemaMismatchError, write_deltalake
from deltalog.errors import DeltaError
from deltalog.schema import ArrayType, MapType, StructType
from tests.python.place import tree

NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone.utc)
INNER = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.date32()))])
TYPES: dict[str, pa.DataType] = {
    "l": pa.list_(pa.string()),
    "s": INNER,
    "m": pa.map_(pa.string(), pa.decimal128(10, 2)),
    "b": pa.list_(pa.int8()),
    "d": pa.list_(pa.float64()),
    "z": pa.map_(pa.int32(), pa.struct([("t", pa.timestamp("us", "UTC")), ("r", pa.binary())])),
    "deep": pa.list_(pa.list_(pa.map_(pa.string(), INNER))),
}
OLD: dict[str, Any] = {
    "l": ["old"],
    "s": {"x": 0, "y": []},
    "m": [("old", Decimal("0.00"))],
    "b": [0],
    "d": [0.5],
    "z": [(0, None)],
    "deep": [[[("old", None)]]],
}


def table_of(path: Path, **columns: Any) -> DeltaTable:
    rows = [{"k": 1, **OLD, **columns}, {"k": 2, **OLD, **columns}]
    schema = pa.schema([("k", pa.int64()), *TYPES.items()])
    write_deltalake(path, pa.Table.from_pylist(rows, schema=schema))
    return DeltaTable(path)


def rows(table: DeltaTable) -> dict[int, Any]:
    found = pa.table(DeltaTable(table.table_uri).to_arrow()).to_pylist()
    return {row.pop("k"): row for row in found}


@pytest.mark.parametrize("column", TYPES)
def test_null_is_assigned(tmp_path: Path, column: str) -> None:
    table = table_of(tmp_path)
    table.update({column: "NULL"}, predicate="k = 1")
    assert rows(table) == {1: {**OLD, column: None}, 2: OLD}
    table.update(new_values={column: None})
    source = pa.table({"k": [2, 3]})
    merge = table.merge(source, "target.k = source.k")
    merge = merge.when_matched_update({column: "NULL"})
    merge.when_not_matched_insert({"k": "source.k", column: "NULL"}).execute()
    assert [row[column] for row in rows(table).values()] == [None, None, None]


# Each entry has a SQL expression, the equivalent Python value, and the value that is stored.
VALUES: dict[str, tuple[str, Any, Any]] = {
    "texts": ("l", ["a", "it's \\ \"b\"", None, ""], ["a", "it's \\ \"b\"", None, ""]),
    "a tuple": ("l", ("a", "b"), ["a", "b"]),
    "nothing": ("l", [], []),
    "only None": ("l", [None, None], [None, None]),
    "NumPy numbers": ("d", np.array([1.5, 2.0]), [1.5, 2.0]),
    "numbers": ("d", [1, 0.1, float("inf"), Decimal("2.5")], [1.0, 0.1, float("inf"), 2.5]),
    "a struct": ("s", {"y": [dt.date(2024, 1, 2), "2024-02-03", None], "X": 5},
                 {"x": 5, "y": [dt.date(2024, 1, 2), dt.date(2024, 2, 3), None]}),
    "a struct of None": ("s", {"x": None, "y": None}, {"x": None, "y": None}),
    "a map": ("m", {"a": 1, "b": Decimal("2.50"), "c": None},
              [("a", Decimal("1.00")), ("b", Decimal("2.50")), ("c", None)]),
    "pairs": ("m", [("a", 1), ("b", "2.5")], [("a", Decimal("1.00")), ("b", Decimal("2.50"))]),
    "an empty map": ("m", {}, []),
    "a map of structs": ("z", {1: {"t": NOON, "r": b"\x00'"}, -2: None}, [(1, {"t": NOON, "r": b"\x00'"}), (-2, None)]),
    "in each other": ("deep", [[], None, [{}, {"a": {"x": 1, "y": []}, "b": None}]],
                      [[], None, [[], [("a", {"x": 1, "y": []}), ("b", None)]]]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_of_python(tmp_path: Path, name: str) -> None:
    column, value, stored = VALUES[name]
    table = table_of(tmp_path)
    table.update(new_values={f"`{column.upper()}`": value}, predicate=[("k", "=", 1)])
    assert rows(table) == {1: {**OLD, column: stored}, 2: OLD}


def test_values_of_sql(tmp_path: Path) -> None:
    table = table_of(tmp_path, l=None)
    table.update(
        {
            "l": "coalesce(l, split('a,b', ','))",
            "s": "named_struct('Y', array(DATE '2024-01-01'), 'x', k + s.x)",
            "m": "if(k = 1, map('k', k, 'half', 0.5), m)",
            "deep": "array(array(map('s', s)), array(), NULL)",
        }
    )
    changed = {
        **OLD,
        "l": ["a", "b"],
        "s": {"x": 1, "y": [dt.date(2024, 1, 1)]},
        "m": [("k", Decimal("1.00")), ("half", Decimal("0.50"))],
        "deep": [[[("s", OLD["s"])]], [], None],
    }
    assert rows(table) == {1: changed, 2: {**changed, "s": {**changed["s"], "x": 2}, "m": OLD["m"]}}
    source = pa.table({"k": [2, 3], "name": ["two", "three"]})
    merge = table.merge(source, "target.k = source.k")
    merge = merge.when_matched_update({"l": "array(source.name)"})
    merge = merge.when_not_matched_insert(
        {"k": "source.k", "z": "map(1, struct(NULL AS t, X'00' AS r))", "m": "map(source.name, source.k)"}
    )
    merge.execute()
    found = rows(table)
    assert found[2]["l"] == ["two"]
    assert found[3] == {
        **dict.fromkeys(OLD), "z": [(1, {"t": None, "r": b"\x00"})], "m": [("three", Decimal("3.00"))]
    }  # fmt: skip


REFUSED: dict[str, tuple[str, Any, str]] = {
    "a missing field": ("s", {"x": 1}, "the field 'y' is missing"),
    "a missing field within": ("deep", [[{"a": {"y": None}}]], r"'element\.element\.value\.x' is missing"),
    "another field": ("s", {"x": 1, "y": None, "q": 1}, "the field 'q' does not exist in the column"),
    "no field": ("s", {}, "the names of the struct's fields"),
    "fields without names": ("s", {1: 2}, "the names of the struct's fields"),
    "a fraction": ("b", [1, 1.5], r"1\.5 in .* would be changed to fit type TINYINT"),
    "digits": ("m", {"a": Decimal("2.555")}, r"would be changed to fit type DECIMAL\(10,2\)"),
    "a number that is too large": ("b", [1, 200], r"does not fit the type ARRAY<TINYINT>"),
    "a number beside NaN": ("b", [float("nan")], "has no value for"),
    "a key that is None": ("m", {None: 1}, "a key of a map is NULL"),
    "a key twice": ("m", [("a", 1), ("a", 2)], "a map has the same key twice"),
    "no pairs": ("m", ["ab"], "a dict, or a list of pairs"),
    "a struct for an array": ("l", {"a": "b"}, "STRUCT<a: STRING> to ARRAY<STRING>"),
    "an array for a number": ("k", [1], "ARRAY<INT> to BIGINT"),
    "a text for an array": ("l", "a", "STRING to ARRAY<STRING>"),
    "what has no form": ("l", [object()], "has no SQL form"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    column, value, match = REFUSED[name]
    table = table_of(tmp_path)
    before = tree(tmp_path)
    with pytest.raises((InvalidArgumentError, SchemaMismatchError), match=match) as refused:
        table.update(new_values={column: value})
    assert refused.value.hint
    assert tree(tmp_path) == before


def test_computed_values_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for values, match in [
        ({"b": "array(k + 1000)"}, r"has no value for \[100[12]\]"),
        ({"s": "struct(k AS x)"}, "the field 'y' is missing"),
        ({"m": "map(if(k = 2, NULL, 'a'), 1)"}, "a key of a map is NULL"),
        ({"l": "l || l"}, "not supported"),
    ]:
        with pytest.raises(DeltaError, match=match):
            table.update(values)
    assert rows(table) == {1: OLD, 2: OLD}


def test_arrays_are_not_compared(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for condition in ["l = array('a')", "l IN (array('a'))", "s = s", "array(k) <> array(1)"]:
        with pytest.raises(InvalidArgumentError, match="cannot be compared") as refused:
            table.delete(condition)
        assert "FUNCTIONS.md" in str(refused.value.hint)
    assert (
        table.count("array_contains(l, 'old') AND size(b) = 1 AND l IS NOT NULL AND array(k) IS NOT NULL")
        == 2
    )


@pytest.mark.parametrize("nullable", [True, False])
def test_elements_that_must_not_be_null(tmp_path: Path, nullable: bool) -> None:
    element = pa.field("element", pa.int32(), nullable)
    schema = pa.schema([("k", pa.int64()), pa.field("l", pa.list_(element))])
    write_deltalake(tmp_path, pa.table([[1], [[1]]], schema=schema))
    table = DeltaTable(tmp_path)
    table.update({"l": "array(1, 2, CAST(k AS INT))"})
    if nullable:
        table.update({"l": "array(k, NULL)"})
    else:
        with pytest.raises(DeltaError, match=r"\[1, \]|null|NULL"):
            table.update({"l": "array(k, NULL)"})
    table.update({"l": "NULL"})
    assert pa.table(table.to_arrow()).to_pylist() == [{"k": 1, "l": None}]


def test_generated_columns_and_defaults(tmp_path: Path) -> None:
    fields = [
        Field("t", "string"),
        Field("parts", ArrayType("string"), generated_as="split(t, '-')"),
        Field(
            "none",
            StructType([Field("x", "integer")]),
            generated_as="if(t = 'c-d-e', named_struct('x', 1), NULL)",
        ),
    ]
    table = DeltaTable.create(tmp_path, Schema(fields), configuration={"delta.columnMapping.mode": "name"})
    write_deltalake(tmp_path, pa.table({"t": ["a-b", None]}), mode="append")
    table.update({"t": "'c-d-e'"}, predicate="t IS NULL")
    given = pa.table(
        {"t": ["x-y"], "parts": [["x", "y"]], "none": pa.array([None], pa.struct([("x", pa.int32())]))}
    )
    write_deltalake(tmp_path, given, mode="append")
    with pytest.raises(DeltaError, match="violates the generated column 'parts'"):
        write_deltalake(tmp_path, given.set_column(1, "parts", pa.array([["x"]])), mode="append")
    found = {
        row["t"]: (row["parts"], row["none"]) for row in pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist()
    }
    assert found == {
        "a-b": (["a", "b"], None),
        "c-d-e": (["c", "d", "e"], {"x": 1}),
        "x-y": (["x", "y"], None),
    }
    defaults = Schema(
        [
            Field("k", "long"),
            Field("m", MapType("string", "long"), default="map('a', 1)"),
            Field("l", ArrayType("integer"), default="NULL"),
        ]
    )
    DeltaTable.create(tmp_path / "defaults", defaults)
    write_deltalake(tmp_path / "defaults", pa.table({"k": [1, 2]}), mode="append")
    found = pa.table(DeltaTable(tmp_path / "defaults").to_arrow()).to_pylist()
    assert found == [{"k": k, "m": [("a", 1)], "l": None} for k in (1, 2)]


def test_a_variant_is_not_made_of_bytes(tmp_path: Path) -> None:
    inner = StructType([Field("v", "variant"), Field("x", "integer")])
    DeltaTable.create(tmp_path, Schema([Field("k", "long"), Field("v", "variant"), Field("s", inner)]))
    write_deltalake(tmp_path, pa.table({"k": [1]}), mode="append")
    table = DeltaTable(tmp_path)
    raw = "named_struct('metadata', X'01', 'value', X'00')"
    for values in [{"v": raw}, {"s": f"named_struct('v', {raw}, 'x', 1)"}, {"v": "1"}]:
        with pytest.raises((InvalidArgumentError, SchemaMismatchError)) as refused:
            table.update(values)
        assert refused.value.hint
    table.update({"v": "NULL", "s": "named_struct('v', NULL, 'x', 5)"})
    table.update({"s": "if(k = 1, s, NULL)"})
    assert pa.table(table.to_arrow()).to_pylist() == [{"k": 1, "v": None, "s": {"v": None, "x": 5}}]
