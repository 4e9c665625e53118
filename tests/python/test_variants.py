"""Variants are written without shredding (table feature `variantType`; Parquet's `VariantEncoding.md`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, SchemaMismatchError, write_deltalake
from tests import variants
from tests.crafted import CraftedTable, field
from tests.python.place import actions, data_files


def stored(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    return rows


def test_variants_are_read_as_they_were_written(tmp_path: Path) -> None:
    data = variants.table()
    write_deltalake(tmp_path / "t", data)
    protocol = DeltaTable(tmp_path / "t").protocol()
    assert protocol.reader_features == ["variantType"]
    assert stored(tmp_path / "t") == data.to_pylist()
    write_deltalake(tmp_path / "t", data.take([1, 2]), mode="append")
    write_deltalake(tmp_path / "t", data, mode="overwrite")
    assert stored(tmp_path / "t") == data.to_pylist()


def test_files_have_both_parts_and_no_statistics(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", variants.table().select(["id", "v"]))
    (file,) = data_files(tmp_path / "t")
    columns = pq.ParquetFile(tmp_path / "t" / file).schema
    found = {(columns.column(i).path, columns.column(i).physical_type) for i in range(len(columns))}
    assert found == {("id", "INT64"), ("v.metadata", "BYTE_ARRAY"), ("v.value", "BYTE_ARRAY")}
    (add,) = (action["add"] for action in actions(tmp_path / "t", 0) if "add" in action)
    stats = json.loads(add["stats"])
    assert stats["numRecords"] == len(variants.SAMPLES)
    for name in ("minValues", "maxValues", "nullCount"):
        assert set(stats[name]) == {"id"}


def test_data_need_no_mark_if_the_table_has_the_type(tmp_path: Path) -> None:
    path = CraftedTable(
        tmp_path / "t",
        [field("id", "long"), field("v", "variant")],
        features=["variantType", "variantShredding-preview"],
    ).commit()
    parts = pa.struct([pa.field("VALUE", pa.binary_view()), pa.field("metadata", pa.large_binary())])
    plain = [value and {"VALUE": value["value"], "metadata": value["metadata"]} for value in variants.VALUES]
    write_deltalake(path, pa.table({"id": range(len(plain)), "V": pa.array(plain, parts)}), mode="append")
    assert [row["v"] for row in stored(path)] == variants.VALUES


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([{"metadata": b"\x01\x00\x00"}], pa.struct([("metadata", pa.binary())]), "v.value"),
        ([{"metadata": b"\x01\x00\x00", "value": None}], variants.STORAGE, "v.value.*NULL"),
        ([None, {"metadata": b"\x01\x00\x00", "value": b""}], variants.STORAGE, "row 1 of the data is not"),
        ([{"metadata": b"\x02\x00\x00", "value": b"\x00"}], variants.STORAGE, "version 1"),
        ([{"metadata": b"", "value": b"\x00"}], variants.STORAGE, "version 1"),
        (
            [{"metadata": b"\x01\x00\x00", "value": None, "typed_value": 7}],
            pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())]),
            "'v' has shredded variants",
        ),
        (["x"], pa.string(), "column 'v' has type"),
    ],
)
def test_invalid_variants_are_refused(
    tmp_path: Path, values: list[Any], kind: pa.DataType, message: str
) -> None:
    path = CraftedTable(tmp_path / "t", [field("v", "variant")], features=["variantType"]).commit()
    if kind == variants.STORAGE:
        kind = pa.struct([(part.name, part.type) for part in kind])
    with pytest.raises(SchemaMismatchError, match=message):
        write_deltalake(path, pa.table({"v": pa.array(values, kind)}), mode="append")
    assert not data_files(path)


def test_a_column_of_variants_is_added(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [9]}))
    write_deltalake(tmp_path / "t", variants.table().select(["id", "v"]), mode="append", schema_mode="merge")
    assert [row["v"] for row in stored(tmp_path / "t")] == [*variants.VALUES, None]
    assert "variantType" in (DeltaTable(tmp_path / "t").protocol().writer_features or [])
