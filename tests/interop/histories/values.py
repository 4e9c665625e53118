"""Draws random values of every type, mostly at the limits of the type's range, or values that writers tend to get
wrong.
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
import struct
from typing import Any

import pyarrow as pa

from tests.interop.data import STRINGS

UTC = dt.timezone.utc

SHORT_TEXTS = [*(text for text in STRINGS if text is not None), ""]
# Long strings, which statistics truncate.
TEXTS = [*SHORT_TEXTS, "a" * 40, "\U0001f600" * 33, "\uffff" * 33]
DATES = [
    dt.date(1, 1, 1),
    dt.date(1582, 10, 4),
    dt.date(1582, 10, 10),
    dt.date(1582, 10, 15),
    dt.date(1969, 12, 31),
    dt.date(2024, 2, 29),
    dt.date(9999, 12, 31),
]
TIMES = [
    dt.datetime(1, 1, 1),
    dt.datetime(1582, 10, 10, 1, 2, 3, 4),
    dt.datetime(1900, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2024, 2, 29, 12, 30, 0, 1),
    dt.datetime(2262, 4, 12),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.1, -1.5, 3.0e38, -1e-30]


def draw_partition_value(rng: random.Random, kind: pa.DataType) -> Any:
    """Draws a value that can be part of the name of a directory."""
    if pa.types.is_string(kind) and rng.random() < 0.8:
        return rng.choice(SHORT_TEXTS)
    return None if pa.types.is_string(kind) else draw(rng, kind)


def draw(rng: random.Random, kind: pa.DataType, *, nulls: float = 0.2) -> Any:
    """Draws a value of type `kind`; at each level it is None with the probability `nulls`."""
    if rng.random() < nulls:
        return None
    if pa.types.is_struct(kind):
        return {field.name: draw(rng, field.type) for field in kind}
    if pa.types.is_map(kind):
        keys = rng.sample(TEXTS, rng.randrange(3))
        return [(key, draw(rng, kind.item_type)) for key in keys]
    if pa.types.is_list(kind):
        return [draw(rng, kind.value_type) for _ in range(rng.randrange(3))]
    return _scalar(rng, kind)


def _scalar(rng: random.Random, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return rng.choice([-most, most - 1, 0, -1, rng.randrange(100)])
    if pa.types.is_floating(kind):
        number = rng.choice(FLOATS)
        return number if kind.bit_width == 64 else struct.unpack("f", struct.pack("f", number))[0]
    if pa.types.is_decimal(kind):
        digits = rng.choice([0, 1, -1, 10**kind.precision - 1, 1 - 10**kind.precision, rng.randrange(10**4)])
        return decimal.Decimal(digits).scaleb(-kind.scale, decimal.Context(prec=76))
    if pa.types.is_string(kind):
        return rng.choice(TEXTS)
    if pa.types.is_binary(kind):
        return rng.choice([b"", b"\x00\xff", b"text", b"\xff" * 40])
    if pa.types.is_date(kind):
        return rng.choice(DATES)
    if pa.types.is_timestamp(kind):
        time = rng.choice(TIMES)
        return time if kind.tz is None else time.replace(tzinfo=UTC)
    raise TypeError(f"no values of type {kind}")
