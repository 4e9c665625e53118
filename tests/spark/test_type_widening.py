"""Spark's native scan reads columns that were widened from bytes and shorts to decimals, at every level of nesting
(PROTOCOL, "Type Widening").
"""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog
from tests.crafted import CraftedTable, field, struct


def change(before: str, now: str, path: str | None = None) -> dict[str, Any]:
    entry = {"fromType": before, "toType": now}
    return {"delta.typeChanges": [entry if path is None else {**entry, "fieldPath": path}]}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def of_map(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


FIELDS = [
    field("n", "integer"),
    field("plain", "decimal(5,2)", change("byte", "decimal(5,2)")),
    field("s", struct(field("a", "string"), field("d", "decimal(7,2)", change("short", "decimal(7,2)")))),
    field("l", array("decimal(6,1)"), change("short", "decimal(6,1)", "element")),
    field("m", of_map("decimal(5,0)", array("decimal(8,3)")), change("short", "decimal(5,0)", "key")),
    field(
        "deep",
        array(struct(field("x", of_map("string", "decimal(5,2)"), change("byte", "decimal(5,2)", "value")))),
    ),
]
FIELDS[4]["metadata"]["delta.typeChanges"] += change("byte", "decimal(8,3)", "value.element")[
    "delta.typeChanges"
]


def rows(n: int, number: type) -> dict[str, Any]:
    def of(value: int) -> Any:
        return number(value)

    return {
        "n": n,
        "plain": of(-100 + n),
        "s": {"a": f"row {n}", "d": of(30_000 - n)},
        "l": [of(n), None, of(-32_768)],
        "m": [(of(n), [of(1), None]), (of(-n - 1), None)],
        "deep": [{"x": [("k", of(n))]}, None, {"x": None}],
    }


def table(path: Path, spark_reads: str = "decimal(5,2)") -> str:
    """Writes a table with one file of integers and one file of decimals. Each file also has a row of nulls."""
    old = pa.schema(
        [
            ("n", pa.int32()),
            ("plain", pa.int8()),
            ("s", pa.struct([("a", pa.string()), ("d", pa.int16())])),
            ("l", pa.list_(pa.int16())),
            ("m", pa.map_(pa.int16(), pa.list_(pa.int8()))),
            ("deep", pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.int8()))]))),
        ]
    )
    new = pa.schema(
        [
            ("n", pa.int32()),
            ("plain", pa.decimal128(5, 2)),
            ("s", pa.struct([("a", pa.string()), ("d", pa.decimal128(7, 2))])),
            ("l", pa.list_(pa.decimal128(6, 1))),
            ("m", pa.map_(pa.decimal128(5, 0), pa.list_(pa.decimal128(8, 3)))),
            ("deep", pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.decimal128(5, 2)))]))),
        ]
    )
    fields = [each if each["name"] != "plain" else {**each, "type": spark_reads} for each in FIELDS]
    crafted = CraftedTable(path, fields, features=["typeWidening"])
    for name, schema, number, first in (("old", old, int, 0), ("new", new, Decimal, 10)):
        data = [rows(n, number) for n in range(first, first + 5)]
        file = crafted.write(
            f"{name}.parquet",
            pa.Table.from_pylist([*data, {"n": first + 5}], schema),
            row_group_size=2,
            store_decimal_as_integer=True,
        )
        crafted.add(file.name)
    return str(crafted.commit())


@pytest.mark.parametrize("batched", ["true", "false"])
def test_nested_and_top_level_decimals_are_read(spark: SparkSession, tmp_path: Path, batched: str) -> None:
    path = table(tmp_path / "t")
    wanted = sorted(pa.table(deltalog.DeltaTable(path).to_arrow()).to_pylist(), key=lambda row: row["n"])
    assert (len(wanted), wanted[2]["s"]["d"], wanted[2]["m"][0][1][0]) == (
        12,
        Decimal("29998.00"),
        Decimal("1.000"),
    )
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", batched)
    try:
        frame = spark.read.format("deltalog").load(path)
        assert frame.orderBy("n").toArrow().to_pylist() == wanted
        parts = (
            frame.orderBy("n")
            .selectExpr("s.d", "l[2]", "map_keys(m)[0]", "deep[0].x['k']", "plain")
            .collect()
        )
        assert [tuple(row) for row in parts[:2]] == [
            (Decimal("30000.00"), Decimal("-32768.0"), Decimal(0), Decimal("0.00"), Decimal("-100.00")),
            (Decimal("29999.00"), Decimal("-32768.0"), Decimal(1), Decimal("1.00"), Decimal("-99.00")),
        ]
        assert [row.n for row in frame.where("s.d = 29988 OR s.d = 29998").orderBy("n").collect()] == [2, 12]
        assert frame.where("s.d IS NULL").count() == 2
        assert frame.where("n < 3 AND plain < -98").select("deep").count() == 2
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_decimals_with_too_many_digits_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(deltalog.UnsupportedFeatureError, match=r"column plain .*typeWidening"):
        spark.read.format("deltalog").load(table(tmp_path / "t", "decimal(38,35)"))
