"""Examples of variants, encoded byte by byte as Parquet's `VariantEncoding.md` defines."""

from __future__ import annotations

import pyarrow as pa

MARK = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
STORAGE = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
# Each variant as JSON, and its encoded metadata and value.
SAMPLES: list[tuple[str | None, dict[str, bytes] | None]] = [
    ("7", {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}),
    ('"hi"', {"metadata": b"\x01\x00\x00", "value": b"\x09hi"}),
    ('{"a":7}', {"metadata": b"\x01\x01\x00\x01a", "value": b"\x02\x01\x00\x00\x02\x0c\x07"}),
    ("null", {"metadata": b"\x01\x00\x00", "value": b"\x00"}),
    (None, None),
]
TEXTS = [text for text, _ in SAMPLES]
VALUES = [value for _, value in SAMPLES]


def field(name: str) -> pa.Field:
    """Returns a field of the variant type."""
    return pa.field(name, STORAGE, metadata=MARK)


def table() -> pa.Table:
    """Returns a table with a column `v` of variants, and with the same variants in a struct, a list and a map."""
    nested = [
        ("s", pa.struct([field("v")]), [{"v": value} for value in VALUES]),
        ("l", pa.list_(field("element")), [[value, value] for value in VALUES]),
        ("m", pa.map_(pa.string(), field("value")), [[("k", value)] for value in VALUES]),
    ]
    columns = {"id": pa.array(range(len(VALUES)), pa.int64()), "v": pa.array(VALUES, STORAGE)}
    fields = [pa.field("id", pa.int64()), field("v")]
    for name, kind, values in nested:
        columns[name] = pa.array(values, kind)
        fields.append(pa.field(name, kind))
    return pa.table(list(columns.values()), schema=pa.schema(fields))
