"""Tests the canonical form of rows with one value of each kind. The README of the golden tables defines the form."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.golden import canonical


@pytest.mark.parametrize(
    ("type_", "cell", "text"),
    [
        (pa.bool_(), True, "true"),
        (pa.int64(), -(2**63), "-9223372036854775808"),
        (pa.float32(), 0.1, "0.10000000149011612"),
        (pa.float64(), 1e16, "1e+16"),
        (pa.float64(), float("nan"), '"NaN"'),
        (pa.float64(), float("-inf"), '"-Infinity"'),
        (pa.decimal128(38, 10), Decimal("0E-10"), '"0.0000000000"'),
        (pa.string(), "é\n", '"é\\n"'),
        (pa.binary(), b"\x00\xff", '"00ff"'),
        (pa.date32(), dt.date(1, 1, 1), '"0001-01-01"'),
        (
            pa.timestamp("us", "UTC"),
            dt.datetime(9999, 12, 31, tzinfo=dt.timezone.utc),
            '"9999-12-31T00:00:00.000000"',
        ),
        (pa.timestamp("us"), dt.datetime(1970, 1, 1, 0, 0, 0, 1), '"1970-01-01T00:00:00.000001"'),
        (pa.list_(pa.int32()), [2, None, 1], "[2,null,1]"),
        (pa.struct({"b": pa.int32(), "a": pa.int32()}), {"b": 1, "a": None}, '{"a":null,"b":1}'),
        (pa.map_(pa.string(), pa.list_(pa.int32())), [("b", [1]), ("a", None)], '[["a",null],["b",[1]]]'),
        (pa.map_(pa.string(), pa.int32()), [], "[]"),
        (pa.null(), None, "null"),
    ],
)
def test_each_kind_of_value(type_: pa.DataType, cell: object, text: str) -> None:
    assert canonical.rows(pa.table({"c": pa.array([cell], type_)})) == [f'{{"c":{text}}}']


def test_lines_are_sorted_by_their_bytes() -> None:
    assert canonical.rows(pa.table({"c": ["é", "z", "a"]})) == ['{"c":"a"}', '{"c":"z"}', '{"c":"é"}']


def test_no_rows_hash_to_the_hash_of_nothing() -> None:
    assert canonical.sha256([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
