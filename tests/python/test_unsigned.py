"""Unsigned integers, which tables do not have, are stored in the next type that holds all their values.

Protocol: "Primitive Types".
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Schema, SchemaMismatchError, convert_to_delta, write_deltalake
from tests.python.place import actions, data_files

U8, U16, U32, U64 = pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
MOST = 2**64 - 1
TYPES = {"u8": "short", "u16": "integer", "u32": "long", "u64": "decimal(20,0)"}
LARGEST = pa.table(
    {
        "u8": pa.array([0, 2**8 - 1, None], U8),
        "u16": pa.array([0, 2**16 - 1, None], U16),
        "u32": pa.array([0, 2**32 - 1, None], U32),
        "u64": pa.array([0, MOST, None], U64),
    }
)


def types(table: DeltaTable) -> dict[str, Any]:
    return {field.name: json.loads(field.to_json())["type"] for field in table.schema().fields}


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("created", {"mode": "append"}),
    ("written", {"mode": "error"}),
    ("written", {"mode": "overwrite", "schema_mode": "overwrite"}),
]


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(DeltaTable(path).to_arrow()).to_pylist()
    return found


def test_a_new_table_has_the_next_wider_types(tmp_path: Path) -> None:
    assert Schema.from_arrow(LARGEST.schema) == Schema.from_arrow(
        pa.schema({"u8": pa.int16(), "u16": pa.int32(), "u32": pa.int64(), "u64": pa.decimal128(20, 0)})
    )
    assert types(DeltaTable.create(tmp_path / "created", LARGEST.schema)) == TYPES
    for name, options in WRITES:
        write_deltalake(tmp_path / name, LARGEST, **options)
        assert rows(tmp_path / name) == LARGEST.to_pylist()
        assert types(DeltaTable(tmp_path / name)) == TYPES


def test_nested_and_encoded_values_partitions_and_statistics(tmp_path: Path) -> None:
    given = pa.table(
        {
            "p": pa.array([MOST, MOST, 7], U64),
            "list": pa.array([[MOST, None], [], None], pa.large_list(U64)),
            "struct": pa.array([{"a": 1}, {"a": MOST}, None], pa.struct({"a": U64})),
            "map": pa.array([[(255, MOST)], [], None], pa.map_(U8, U64)),
            "dictionary": pa.array([MOST, 0, None], U64).dictionary_encode(),
            "runs": pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([MOST, 0], U64)),
        }
    )
    write_deltalake(tmp_path, given, partition_by=["p"])
    table = DeltaTable(tmp_path)
    wide = pa.decimal128(20, 0)
    assert pa.table(table.to_arrow()).schema.types == [
        wide,
        pa.list_(pa.field("element", wide)),
        pa.struct({"a": wide}),
        pa.map_(pa.int16(), wide),
        wide,
        wide,
    ]
    found = {row["dictionary"]: row for row in pa.table(table.to_arrow()).to_pylist()}
    assert found == {row["dictionary"]: row for row in given.to_pylist()}
    added = [action["add"] for action in actions(tmp_path, 0) if "add" in action]
    values = sorted(
        (int(add["partitionValues"]["p"]), json.loads(add["stats"])["numRecords"]) for add in added
    )
    assert values == [(7, 1), (MOST, 2)]
    [large] = [json.loads(add["stats"]) for add in added if add["partitionValues"]["p"] != "7"]
    assert (large["minValues"]["dictionary"], large["maxValues"]["dictionary"]) == (0, MOST)
    assert (large["minValues"]["struct"]["a"], large["maxValues"]["struct"]["a"]) == (1, MOST)
    assert table.count(f"p = {MOST}") == 2
    assert table.count(f"struct.a = {MOST} AND dictionary = 0") == 1


# For each column type: a value that it can hold, the value that is read back, and a value that it cannot hold.
COLUMNS: dict[str, tuple[int, Any, int]] = {
    "byte": (2**7 - 1, 2**7 - 1, 2**7),
    "short": (2**15 - 1, 2**15 - 1, 2**15),
    "integer": (2**31 - 1, 2**31 - 1, 2**31),
    "long": (2**63 - 1, 2**63 - 1, 2**63),
    "decimal(19,0)": (10**19 - 1, 10**19 - 1, 10**19),
    "decimal(20,2)": (10**18 - 1, Decimal(10**18 - 1), 10**18),
    "float": (2**24, 2.0**24, 2**24 + 1),
    "double": (2**53, 2.0**53, 2**53 + 1),
}


@pytest.mark.parametrize("schema_mode", [None, "merge"])
@pytest.mark.parametrize("column", COLUMNS)
def test_each_value_is_checked_for_an_existing_column(tmp_path: Path, column: str, schema_mode: Any) -> None:
    fits, read, large = COLUMNS[column]
    table = DeltaTable.create(tmp_path, Schema.from_json(schema_of(column)))

    def data(value: int) -> pa.Table:
        return pa.table({"c": pa.array([1, value], U64)})

    def source(value: int) -> Any:
        return table.merge(pa.table({"k": pa.array([value], U64)}), "false").when_not_matched_insert(
            {"c": "k"}
        )

    write_deltalake(table, data(fits), mode="append", schema_mode=schema_mode)
    source(fits).execute()
    assert sorted(row["c"] for row in rows(tmp_path)) == [1, read, read]
    before = data_files(tmp_path)
    said = rf"column 'c' has the value {large} of type UInt64, which .* type {re.escape(column)}"
    with pytest.raises(SchemaMismatchError, match=said):
        write_deltalake(table, data(large), mode="append", schema_mode=schema_mode)
    with pytest.raises(SchemaMismatchError, match=f"column 'c' has the value {large} "):
        source(large).execute()
    assert (data_files(tmp_path), DeltaTable(tmp_path).version()) == (before, 2)
    assert types(DeltaTable(tmp_path)) == {"c": column}


def schema_of(column: str) -> str:
    return json.dumps(
        {"type": "struct", "fields": [{"name": "c", "type": column, "nullable": True, "metadata": {}}]}
    )


def test_a_merge_of_unsigned_keys(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "n": pa.array([None, 5], pa.int32())}))
    source = pa.table({"id": pa.array([2, 2**63 - 1], U64), "n": pa.array([250, 7], U8)})
    merge = DeltaTable(tmp_path).merge(source, "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = sorted((row["id"], row["n"]) for row in rows(tmp_path))
    assert found == [(1, None), (2, 250), (2**63 - 1, 7)]
    far = pa.table({"id": pa.array([MOST], U64), "n": pa.array([1], U8)})
    merge = DeltaTable(tmp_path).merge(far, "target.id = source.id").when_not_matched_insert_all()
    with pytest.raises(SchemaMismatchError, match=f"'id' has the value {MOST} .* type long"):
        merge.execute()


def test_new_and_wider_columns(tmp_path: Path) -> None:
    """Columns become wider in the same way as for signed integers, but an integer column does not become a decimal."""
    old = pa.table({"a": pa.array([1], pa.int8()), "b": pa.array([1], pa.int64()), "v": pa.nulls(1)})
    write_deltalake(tmp_path, old, configuration={"delta.enableTypeWidening": "true"})
    new = {"a": pa.array([2**32 - 1], U32), "b": pa.array([9], U64), "v": pa.array([MOST], U64)}
    write_deltalake(
        tmp_path, pa.table({**new, "c": pa.array([MOST], U64)}), mode="append", schema_mode="merge"
    )
    wide = "decimal(20,0)"
    assert types(DeltaTable(tmp_path)) == {"a": "long", "b": "long", "v": wide, "c": wide}
    source = pa.table({"b": pa.array([10], U64), "d": pa.array([MOST], U64)})
    merge = DeltaTable(tmp_path).merge(source, "target.b = source.b", merge_schema=True)
    merge.when_not_matched_insert_all().execute()
    assert types(DeltaTable(tmp_path))["d"] == wide
    assert {row["d"] for row in rows(tmp_path)} == {None, MOST}


def test_parquet_files_are_converted_as_spark_reads_them(tmp_path: Path) -> None:
    """The bounds of unsigned columns in a file do not follow the order of the table's type, so they must not exclude
    the file.
    """
    pq.write_table(LARGEST, tmp_path / "a.parquet")
    convert_to_delta(tmp_path)
    table = DeltaTable(tmp_path)
    assert types(table) == TYPES
    assert rows(tmp_path) == LARGEST.to_pylist()
    for name, large in {"u8": 200, "u16": 40_000, "u32": 2**31, "u64": 2**63}.items():
        assert (table.count(f"{name} >= {large}"), table.count(f"{name} < 1")) == (1, 1)
    table.delete(f"u64 = {MOST}")
    assert rows(tmp_path) == [row for row in LARGEST.to_pylist() if row["u64"] != MOST]


def test_counts_and_hashes_of_polars_and_duckdb(tmp_path: Path) -> None:
    pl: Any = pytest.importorskip("polars")
    duckdb: Any = pytest.importorskip("duckdb")
    frame = pl.LazyFrame({"k": ["a", "b", "a"]}).group_by("k").agg(pl.len(), h=pl.col("k").hash().first())
    write_deltalake(tmp_path / "polars", frame)
    assert types(DeltaTable(tmp_path / "polars")) == {"k": "string", "len": "long", "h": "decimal(20,0)"}
    assert sorted(rows(tmp_path / "polars"), key=str) == sorted(frame.collect().to_dicts(), key=str)
    sums = duckdb.sql(f"SELECT sum(i)::HUGEINT AS s, {MOST}::UBIGINT AS u FROM range(10) t(i)")
    write_deltalake(tmp_path / "duckdb", sums)
    assert rows(tmp_path / "duckdb") == [{"s": 45, "u": MOST}]
    table = DeltaTable.create(tmp_path / "sums", pa.schema([("s", pa.int64()), ("u", pa.decimal128(38, 0))]))
    write_deltalake(table, sums, mode="append")
    assert rows(tmp_path / "sums") == [{"s": 45, "u": MOST}]
