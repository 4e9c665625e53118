"""Creates rows that writers tend to get wrong.

The rows have values of every type, nulls at every level, the limits of ranges, and partition values that must be
escaped.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

UTC = dt.timezone.utc

TYPES = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "byte": pa.array([-128, 127, None], pa.int8()),
        "short": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
        "int": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "long": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        "float": pa.array([float("inf"), -0.1, None], pa.float32()),
        "double": pa.array([float("nan"), 1e300, None], pa.float64()),
        "small": pa.array([Decimal("-1.50"), Decimal("9.99"), None], pa.decimal128(3, 2)),
        "large": pa.array(
            [Decimal("1E-10"), Decimal("9" * 28 + "." + "9" * 10), None], pa.decimal128(38, 10)
        ),
        "boolean": pa.array([True, False, None]),
        "string": pa.array(["", "é\U0001f600\n'\"", None]),
        "binary": pa.array([b"", b"\x00\xff", None]),
        "date": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        "timestamp": pa.array(
            [dt.datetime(1900, 1, 1, tzinfo=UTC), dt.datetime(2261, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None],
            pa.timestamp("us", "UTC"),
        ),
        "struct": pa.array(
            [{"a": 1, "b": {"c": None}}, {"a": None, "b": None}, None],
            pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string()})}),
        ),
        "array": pa.array([[], [1, None], None], pa.list_(pa.int32())),
        "map": pa.array([[], [("k", 1), ("l", None)], None], pa.map_(pa.string(), pa.int32())),
    }
)

STRINGS = (
    "plain",
    "a b",
    "a/b",
    "a=b",
    "100%",
    "%20",
    "é\U0001f600",
    "c:\\d",
    "x'y\"z",
    "[*]?#",
    "__HIVE_DEFAULT_PARTITION__x",
    None,
)
PARTITIONS = pa.table(
    {
        "value": pa.array(range(len(STRINGS)), pa.int64()),
        "string": pa.array(STRINGS, pa.string()),
        "int": pa.array([None if text is None else len(text) for text in STRINGS], pa.int32()),
        "date": pa.array([dt.date(2020, 2, 29)] * len(STRINGS)),
        "boolean": pa.array([text is None or None for text in STRINGS], pa.bool_()),
    }
)
PARTITION_BY = ["string", "int", "date", "boolean"]
