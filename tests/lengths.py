"""Defines columns with `char(n)` and `varchar(n)` at every level of nesting, and rows for them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.crafted import field, struct

KEY = "__CHAR_VARCHAR_TYPE_STRING"
_STRINGS = {"type": "array", "elementType": "string", "containsNull": True}
FIELDS: list[dict[str, Any]] = [
    field("id", "long"),
    field(
        "s",
        struct(
            field("a", "string"), field("b c", "string"), field("d", "decimal(5,2)"), field("e", _STRINGS)
        ),
        {KEY: "struct<a:char(3),`b c`:varchar(2),d:decimal(5,2),e:array<varchar(1)>>"},
    ),
    field(
        "l", {"type": "array", "elementType": _STRINGS, "containsNull": True}, {KEY: "array<array<char(2)>>"}
    ),
    field(
        "m",
        {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
        {KEY: "map<char(2),varchar(3)>"},
    ),
]
_S = pa.struct(
    [("a", pa.string()), ("b c", pa.string()), ("d", pa.decimal128(5, 2)), ("e", pa.list_(pa.string()))]
)
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "s": _S,
    "l": pa.list_(pa.list_(pa.string())),
    "m": pa.map_(pa.string(), pa.string()),
}


def rows(**columns: list[Any]) -> pa.Table:
    """Returns rows with values in these columns, and NULL in all other columns."""
    count = len(next(iter(columns.values())))
    values = {"id": list(range(count)), **columns}
    return pa.table({name: pa.array(values.get(name, [None] * count), kind) for name, kind in _TYPES.items()})


GIVEN = rows(
    s=[{"a": "x", "b c": "yz  ", "d": None, "e": ["v ", None]}, None, {"a": "äöü ", "b c": None, "e": []}],
    l=[[["a", None, "bc "], None], None, []],
    m=[[("k", "abc"), ("kk", "d     ")], None, []],
)
STORED = rows(
    s=[{"a": "x  ", "b c": "yz", "d": None, "e": ["v", None]}, None, {"a": "äöü", "b c": None, "e": []}],
    l=[[["a ", None, "bc"], None], None, []],
    m=[[("k ", "abc"), ("kk", "d  ")], None, []],
)
# Values that are too long, each with the column that the error must name.
REFUSED = [
    (rows(s=[None, {"a": "abcd"}]), "s.a", "char(3)"),
    (rows(s=[{"b c": "abc"}]), "s.b c", "varchar(2)"),
    (rows(s=[{"e": ["ok", None]}]), "s.e.element", "varchar(1)"),
    (rows(l=[[[], ["abc"]]]), "l.element.element", "char(2)"),
    (rows(m=[[("abc", None)]]), "m.key", "char(2)"),
    (rows(m=[[("a", "äöüa")]]), "m.value", "varchar(3)"),
]
