"""Mapped columns in Spark's own scan (PROTOCOL, "Reader Requirements for Column Mapping")."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from tests.golden.expected import Golden, load

MAPPED = [
    golden
    for golden in load()
    if golden.outcome == "read"
    and (golden.expected.get("metadata") or {}).get("configuration", {}).get("delta.columnMapping.mode")
    in ("name", "id")
    and golden.expected["num_rows"]
]
SIMPLE = ("string", "bigint", "int", "double", "boolean", "date", "timestamp")


def leaves(fields: list[StructField], prefix: str = "") -> list[tuple[str, str]]:
    found = []
    for field in fields:
        name = f"{prefix}`{field.name}`"
        if isinstance(field.dataType, StructType):
            found += leaves(field.dataType.fields, f"{name}.")
        elif field.dataType.simpleString() in SIMPLE:
            found.append((name, field.dataType.simpleString()))
    return found


@pytest.mark.parametrize("golden", MAPPED, ids=lambda golden: golden.name)
def test_filters_by_logical_names_find_all_rows(
    spark: SparkSession, golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.read.format("deltalog").load(str(golden.table))
    names = [name for name, _ in leaves(frame.schema.fields)][:4]
    rows = frame.selectExpr(*(f"{name} AS c{number}" for number, name in enumerate(names))).collect()
    for number, name in enumerate(names):
        values = [row[number] for row in rows]
        assert frame.where(f"{name} IS NULL").count() == values.count(None)
        some = next((value for value in values if value is not None), None)
        if some is not None:
            assert frame.where(sf.expr(name) == sf.lit(some)).count() == values.count(some)
    frame.explain()
    assert "col-" not in capsys.readouterr().out
