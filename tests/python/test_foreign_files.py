"""Data files of other writers are read correctly, whatever encodings they use."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog.schema import Schema
from tests.crafted import CraftedTable, field

UTC = dt.timezone.utc
ROWS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, None, False, True]),
    "tiny": (pa.int8(), [-128, None, 127, 0]),
    "small": (pa.int16(), [-32768, None, 32767, 0]),
    "whole": (pa.int32(), [-(2**31), None, 2**31 - 1, 0]),
    "big": (pa.int64(), [-(2**63), None, 2**63 - 1, 0]),
    "single": (pa.float32(), [1.5, None, float("inf"), -0.0]),
    "double": (pa.float64(), [0.1, None, float("-inf"), 1e-300]),
    "dec9": (pa.decimal128(9, 2), [Decimal("-1.23"), None, Decimal("9999999.99"), Decimal("0.00")]),
    "dec18": (
        pa.decimal128(18, 4),
        [Decimal("-1.2345"), None, Decimal("12345678901234.5678"), Decimal("0.0000")],
    ),
    "dec38": (
        pa.decimal128(38, 10),
        [Decimal("-1.2345678901"), None, Decimal("1234567890123456789012345678.0123456789"), Decimal(0)],
    ),
    "day": (pa.date32(), [dt.date(1, 1, 1), None, dt.date(9999, 12, 31), dt.date(1970, 1, 1)]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(1900, 1, 1, tzinfo=UTC),
            None,
            dt.datetime(2024, 2, 29, 23, 59, 59, 123000, UTC),
            dt.datetime(1970, 1, 1, tzinfo=UTC),
        ],
    ),
    "local": (
        pa.timestamp("us"),
        [
            dt.datetime(1900, 1, 1),
            None,
            dt.datetime(2024, 2, 29, 23, 59, 59, 123000),
            dt.datetime(1970, 1, 1),
        ],
    ),
    "text": (pa.string(), ["é", None, "", "a" * 300]),
    "bytes": (pa.binary(), [b"\xff\x00", None, b"", b"x" * 300]),
    "list": (pa.list_(pa.int64()), [[1, None, 3], None, [], [4]]),
    "lists": (pa.list_(pa.list_(pa.string())), [[["a"], None, []], None, [], [[None]]]),
    "record": (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
        [{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}, {"x": 2, "y": []}],
    ),
    "records": (
        pa.list_(pa.struct([("x", pa.int32()), ("z", pa.string())])),
        [[{"x": 1, "z": "a"}, None], None, [], [{"x": None, "z": None}]],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], None, [], [("c", 3)]]),
    "deep": (
        pa.map_(pa.int32(), pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.float64()))]))),
        [[(1, [{"m": [("k", 0.5)]}, {"m": None}])], None, [], [(2, None)]],
    ),
}
DATA = pa.table({name: pa.array(cells, type_) for name, (type_, cells) in ROWS.items()})
Write = Callable[[pa.Table, Path], None]


def foreign(path: Path, schema: pa.Schema, write: Callable[[Path], None]) -> deltalog.DeltaTable:
    """Returns a table with one data file, which the function `write` writes."""
    crafted = CraftedTable(path, Schema.from_arrow(schema).to_json(), features=["timestampNtz"])
    write(path / "0.parquet")
    crafted.add("0.parquet")
    return deltalog.DeltaTable(crafted.commit())


def arrow(**options: Any) -> Write:
    return lambda table, file: pq.write_table(table, file, **options)


def required(table: pa.Table, file: Path) -> None:
    """Writes the data with all columns that have no nulls declared as required. Nested fields stay optional."""
    fields = [
        pa.field(field.name, field.type, nullable=table[field.name].null_count > 0) for field in table.schema
    ]
    pq.write_table(table.cast(pa.schema(fields)), file)


def polars(table: pa.Table, file: Path) -> None:
    pl.DataFrame(table).write_parquet(file)


def duck(table: pa.Table, file: Path) -> None:
    duckdb.connect().execute(
        f"SET timezone = 'UTC'; COPY (SELECT * FROM \"table\") TO '{file}' (FORMAT parquet)"
    )


WRITERS: dict[str, Write] = {
    "pyarrow": arrow(),
    "two level lists' names": arrow(use_compliant_nested_type=False),
    "format 1.0, int96": arrow(version="1.0", use_deprecated_int96_timestamps=True),
    "milliseconds": arrow(coerce_timestamps="ms", allow_truncated_timestamps=False),
    "data pages v2": arrow(data_page_version="2.0"),
    "no dictionary": arrow(use_dictionary=False),
    "small row groups and pages": arrow(row_group_size=1, data_page_size=1, write_page_index=True),
    "decimals as integers": arrow(store_decimal_as_integer=True),
    "no statistics": arrow(write_statistics=False, store_schema=False),
    "required": required,
    **{codec: arrow(compression=codec) for codec in ("NONE", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD")},
}
# Polars writes maps as lists of structs, so they are left out.
OTHERS = {
    "polars": (polars, [name for name in ROWS if name not in {"map", "deep"}]),
    "duckdb": (duck, list(ROWS)),
}


def delta(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts=None)
    return rows


@pytest.mark.parametrize("writer", WRITERS)
def test_every_type_in_every_encoding(writer: str, tmp_path: Path) -> None:
    table = foreign(tmp_path, DATA.schema, lambda file: WRITERS[writer](DATA, file))
    assert delta(pa.table(table.to_arrow())) == delta(DATA)
    for predicate, left in [
        ("big = 0", [3]),
        ("dec18 > 1.5", [2]),
        ("text IS NULL", [1]),
        ("record.x < 2", [0]),
    ]:
        assert delta(pa.table(table.to_arrow(predicate=predicate))) == delta(DATA.take(left)), predicate


@pytest.mark.parametrize("writer", OTHERS)
def test_other_writers(writer: str, tmp_path: Path) -> None:
    write, names = OTHERS[writer]
    data = DATA.select(names)
    table = foreign(tmp_path, data.schema, lambda file: write(data, file))
    assert delta(pa.table(table.to_arrow())) == delta(data)


ENCODINGS = [
    ("whole", "DELTA_BINARY_PACKED"),
    ("big", "BYTE_STREAM_SPLIT"),
    ("double", "BYTE_STREAM_SPLIT"),
    ("text", "DELTA_BYTE_ARRAY"),
    ("bytes", "DELTA_LENGTH_BYTE_ARRAY"),
    ("dec38", "BYTE_STREAM_SPLIT"),
    ("flag", "RLE"),
]


@pytest.mark.parametrize(("column", "encoding"), ENCODINGS)
def test_encodings(column: str, encoding: str, tmp_path: Path) -> None:
    data = DATA.select([column])

    def write(file: Path) -> None:
        pq.write_table(
            data, file, use_dictionary=False, column_encoding={column: encoding}, data_page_version="2.0"
        )

    assert delta(pa.table(foreign(tmp_path, data.schema, write).to_arrow())) == delta(data)


def test_schemas_that_grew_apart(tmp_path: Path) -> None:
    """Some files have additional columns, lack columns, or have columns in a different order or in a different case.
    The same is true for nested fields.
    """
    stored = pa.table(
        {
            "OTHER": [1, 2],
            "S": pa.array([{"B": "x", "gone": 1}, None]),
            "l": pa.array([[{"k": 1, "gone": "y"}], []]),
            "Id": pa.array([1, 2], pa.int32()),
        }
    )
    schema = pa.schema(
        {
            "id": pa.int64(),
            "late": pa.string(),
            "s": pa.struct({"a": pa.int64(), "b": pa.string()}),
            "l": pa.list_(pa.struct({"new": pa.map_(pa.string(), pa.int32()), "k": pa.int64()})),
        }
    )
    table = foreign(tmp_path, schema, lambda file: pq.write_table(stored, file))
    assert delta(pa.table(table.to_arrow())) == [
        {"id": 1, "late": None, "s": {"a": None, "b": "x"}, "l": [{"new": None, "k": 1}]},
        {"id": 2, "late": None, "s": None, "l": []},
    ]
    assert delta(pa.table(table.to_arrow(columns=["late"], predicate="s.b = 'x' AND late IS NULL"))) == [
        {"late": None}
    ]


def test_a_value_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    stored = pa.table({"tiny": pa.array([1, 300], pa.int32())})
    table = foreign(tmp_path, pa.schema({"tiny": pa.int8()}), lambda file: pq.write_table(stored, file))
    with pytest.raises(deltalog.CorruptDataError, match="tiny"):
        pa.table(table.to_arrow())


@pytest.mark.parametrize(
    ("keys", "day"),
    [
        ({}, "1500-01-10"),
        ({"version": "3.5.0"}, "1500-01-10"),
        ({"version": "2.4.8"}, "1500-01-01"),
        ({"version": "3.5.0", "legacyDateTime": ""}, "1500-01-01"),
        ({"version": "3.0.3", "legacyINT96": ""}, "1500-01-10"),
    ],
)
def test_old_calendars_of_spark(keys: dict[str, str], day: str, tmp_path: Path) -> None:
    """The Parquet footer tells which calendar a file uses. The same day is 1500-01-10 in the Gregorian calendar and
    1500-01-01 in the Julian calendar.

    Old timestamps also depend on a time zone, which files of Spark 2.4 do not record, so only timestamps that do not
    depend on the zone can be read.
    """
    table = CraftedTable(tmp_path, [field("day", "date"), field("at", "timestamp")])
    moments = pa.array([dt.datetime(1500, 1, 10, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    data = pa.table({"day": pa.array([dt.date(1500, 1, 10)]), "at": moments})
    data = data.replace_schema_metadata({f"org.apache.spark.{key}": value for key, value in keys.items()})
    table.write("a", data)
    table.add("a")
    table.commit()
    read = deltalog.DeltaTable(tmp_path)
    assert pa.table(read.to_arrow(["day"])).column("day").to_pylist() == [dt.date.fromisoformat(day)]
    assert pa.table(read.to_arrow(["day"], predicate=f"day = DATE '{day}'")).num_rows == 1
    if day == "1500-01-10":
        assert pa.table(read.to_arrow()).column("at").to_pylist() == moments.to_pylist()
    else:
        with pytest.raises(deltalog.UnsupportedFeatureError, match=r"before 1900.*unknown zone"):
            pa.table(read.to_arrow())
