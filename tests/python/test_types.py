"""Every Arrow type is stored without loss, or refused by name before a file is written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.python.place import data_files

UTC = "UTC"
DICTIONARY = pa.dictionary(pa.int8(), pa.string())

# For each name: the input, and the type that is read back. The values must be the same.
LOSSLESS = {
    "boolean": (pa.array([True, None]), pa.bool_()),
    "int8": (pa.array([-128, 127], pa.int8()), pa.int8()),
    "uint8": (pa.array([0, 255, None], pa.uint8()), pa.int16()),
    "uint16": (pa.array([65535], pa.uint16()), pa.int32()),
    "uint32": (pa.array([2**32 - 1], pa.uint32()), pa.int64()),
    "uint64": (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0)),
    "float16": (pa.array([1.5, None], pa.float16()), pa.float32()),
    "seconds": (pa.array([1], pa.timestamp("s", UTC)), pa.timestamp("us", UTC)),
    "milliseconds": (pa.array([1], pa.timestamp("ms", UTC)), pa.timestamp("us", UTC)),
    "whole nanoseconds": (pa.array([1000], pa.timestamp("ns", UTC)), pa.timestamp("us", UTC)),
    "another zone": (pa.array([1], pa.timestamp("us", "Europe/Berlin")), pa.timestamp("us", UTC)),
    "no zone": (pa.array([1, None], pa.timestamp("us")), pa.timestamp("us")),
    "date": (pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)]), pa.date32()),
    "date64": (pa.array([dt.date(2024, 2, 29)], pa.date64()), pa.date32()),
    "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), pa.string()),
    "dictionary of numbers": (pa.array([5, 5]).dictionary_encode(), pa.int64()),
    "runs": (pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]), pa.string()),
    "string view": (pa.array(["a", "longer than twelve bytes", None], pa.string_view()), pa.string()),
    "large string": (pa.array(["\U0001f600"], pa.large_string()), pa.string()),
    "binary view": (pa.array([b"\x00", b"longer than twelve bytes"], pa.binary_view()), pa.binary()),
    "large binary": (pa.array([b""], pa.large_binary()), pa.binary()),
    "fixed binary": (pa.array([b"ab"], pa.binary(2)), pa.binary()),
    "large list": (
        pa.array([[1], [], None], pa.large_list(pa.int8())),
        pa.list_(pa.field("element", pa.int8())),
    ),
    "fixed list": (
        pa.array([[1, None], None], pa.list_(pa.int8(), 2)),
        pa.list_(pa.field("element", pa.int8())),
    ),
    "list view": (pa.array([[1, 2], [3]], pa.list_view(pa.int8())), pa.list_(pa.field("element", pa.int8()))),
    "large list view": (
        pa.array([[1, 2], [3]], pa.large_list_view(pa.int8())),
        pa.list_(pa.field("element", pa.int8())),
    ),
    "decimal32": (pa.array([Decimal("1.5")], pa.decimal32(5, 1)), pa.decimal128(5, 1)),
    "decimal64": (pa.array([Decimal("1.5")], pa.decimal64(15, 1)), pa.decimal128(15, 1)),
    "small decimal256": (pa.array([Decimal("-1.5")], pa.decimal256(38, 1)), pa.decimal128(38, 1)),
    "negative scale": (pa.array([Decimal("1E+3")], pa.decimal128(5, -2)), pa.decimal128(7, 0)),
    "map": (
        pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int8())),
        pa.map_(pa.string(), pa.int8()),
    ),
    "map of maps": (
        pa.array([[(1, [("k", None)])]], pa.map_(pa.int32(), pa.map_(pa.string(), pa.int8()))),
        pa.map_(pa.int32(), pa.map_(pa.string(), pa.int8())),
    ),
    "nested": (
        pa.array(
            [[{"a": [{"b": "x"}, None]}], None],
            pa.list_(pa.struct({"a": pa.list_(pa.struct({"b": DICTIONARY}))})),
        ),
        pa.list_(
            pa.field(
                "element", pa.struct({"a": pa.list_(pa.field("element", pa.struct({"b": pa.string()})))})
            )
        ),
    ),
    "extension": (pa.array(['{"a":1}'], pa.json_()), pa.string()),
}


@pytest.mark.parametrize("name", LOSSLESS)
def test_stored_without_loss(name: str, tmp_path: Path) -> None:
    array, stored = LOSSLESS[name]
    # The data is written to a new table, and then to the existing table, as a slice whose offsets do not begin at 0.
    write_deltalake(tmp_path, pa.table({"c": array}))
    write_deltalake(
        tmp_path, pa.table({"c": pa.concat_arrays([array, array]).slice(len(array))}), mode="append"
    )
    read = pa.table(DeltaTable(tmp_path).to_arrow())["c"]
    assert read.type == stored
    assert read.to_pylist() == array.to_pylist() * 2


# For each name: the input, and words that the error must contain.
REFUSED = {
    "time32": (pa.array([1], pa.time32("s")), "Time32"),
    "time64": (pa.array([1], pa.time64("us")), "Time64"),
    "duration": (pa.array([1], pa.duration("us")), "Duration"),
    "interval": (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "Interval"),
    "list of null": (pa.array([[None]], pa.list_(pa.null())), "void in an array"),
    "only null in a struct": (pa.array([{"a": None}], pa.struct({"a": pa.null()})), "void"),
    "empty struct": (pa.array([{}], pa.struct([])), "without fields"),
    "list of empty structs": (pa.array([[{}]], pa.list_(pa.struct([]))), "without fields"),
    "large decimal256": (pa.array([Decimal("1.5")], pa.decimal256(76, 1)), "Decimal256.*at most 38 digits"),
    "union": (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), "Union"),
    "nanoseconds": (pa.array([1001], pa.timestamp("ns", UTC)), "rounded"),
    "nanoseconds without a zone": (pa.array([1001], pa.timestamp("ns")), "rounded"),
    "far seconds": (pa.array([2**62], pa.timestamp("s", UTC)), "does not fit"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str, tmp_path: Path) -> None:
    array, said = REFUSED[name]
    path = tmp_path / "t"
    with pytest.raises(
        (deltalog.UnsupportedFeatureError, deltalog.SchemaMismatchError), match=rf"'c[.'].*{said}"
    ) as caught:
        write_deltalake(path, pa.table({"id": range(len(array)), "c": array}))
    assert caught.value.table == path.as_uri()
    assert not path.exists()


def test_every_type_has_nulls(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1], "b": ["x"], "c": [[1]]}))
    write_deltalake(tmp_path, pa.table({"a": [2], "b": pa.nulls(1), "c": pa.nulls(1)}), mode="append")
    assert pa.table(DeltaTable(tmp_path).to_arrow(predicate="a = 2")).to_pylist() == [
        {"a": 2, "b": None, "c": None}
    ]


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (pa.int8(), pa.array([128])),
        (pa.int32(), pa.array([1.5])),
        (pa.int64(), pa.array([1.0])),
        (pa.float32(), pa.array([0.1])),
        (pa.decimal128(3, 1), pa.array([Decimal("1.25")])),
        (pa.string(), pa.array([1])),
        (pa.binary(), pa.array(["a"])),
        (pa.timestamp("us", UTC), pa.array([1], pa.timestamp("us"))),
        (pa.timestamp("us"), pa.array([1], pa.timestamp("us", UTC))),
        (pa.date32(), pa.array([1], pa.timestamp("us", UTC))),
        (pa.list_(pa.int8()), pa.array([[1000]])),
        (pa.struct({"a": pa.int8()}), pa.array([{"b": 1}])),
        (pa.bool_(), pa.array([1])),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused(stored: pa.DataType, given: pa.Array, tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, pa.schema([("c", stored)]))
    with pytest.raises(deltalog.SchemaMismatchError, match="'c"):
        write_deltalake(tmp_path, pa.table({"c": given}), mode="append")
    assert data_files(tmp_path) == []
    assert DeltaTable(tmp_path).version() == 0


def test_not_null_is_enforced(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", inner)])
    DeltaTable.create(tmp_path, schema)
    assert pa.schema(DeltaTable(tmp_path).schema()) == schema
    good: dict[str, Any] = {"id": [1], "s": pa.array([{"x": 1}])}
    for bad in (
        {"id": pa.array([None], pa.int64())},
        {"s": pa.array([{"x": None}], pa.struct({"x": pa.int32()}))},
    ):
        with pytest.raises(deltalog.SchemaMismatchError, match="NOT NULL"):
            write_deltalake(tmp_path, pa.table({**good, **bad}), mode="append")
    with pytest.raises(deltalog.SchemaMismatchError, match="'id' is required"):
        write_deltalake(tmp_path, pa.table({"s": good["s"]}), mode="append")
    write_deltalake(
        tmp_path, pa.table({**good, "s": pa.array([None], pa.struct({"x": pa.int32()}))}), mode="append"
    )
    assert len(data_files(tmp_path)) == 1
