"""Spark's native scan reads tables with column mapping (PROTOCOL, "Reader Requirements for Column Mapping")."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

import deltalog
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


@pytest.mark.parametrize("mode", ["name", "id"])
def test_writes_have_physical_names_and_field_ids(
    spark: SparkSession, tmp_path: Path, mode: str, request: pytest.FixtureRequest
) -> None:
    """Spark creates, appends to and overwrites a table. The Rust core reads it, and finds columns by name or by id."""
    path = str(tmp_path)
    frame = spark.range(10).selectExpr(
        "id AS `the id`",
        "concat('p ', id % 2) AS `p, q`",
        "named_struct('a;b', id, 'c', named_struct('d', id)) AS s",
        "array(named_struct('x', id)) AS l",
        "map('k', named_struct('y', id)) AS m",
    )
    # Field ids are written whatever the session's settings are, because some readers find columns only by their ids.
    spark.conf.set("spark.sql.parquet.fieldId.write.enabled", "false")
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.parquet.fieldId.write.enabled"))
    for start, save_mode in enumerate(["append", "append", "overwrite", "append"]):
        part = frame.where(f"`the id` >= {start}")
        writer = part.write.format("deltalog").mode(save_mode).partitionBy("p, q")
        writer.option("delta.columnMapping.mode", mode).save(path)
    table = deltalog.DeltaTable(path)
    rows = pa.table(table.to_arrow())
    expected = frame.where("`the id` >= 2").unionByName(frame.where("`the id` >= 3")).toArrow()
    key = [("the id", "ascending")]
    assert rows.select(expected.column_names).sort_by(key).to_pylist() == expected.sort_by(key).to_pylist()
    read = spark.read.format("deltalog").load(path)
    assert read.where("`p, q` = 'p 1' AND s.`a;b` > 6").count() == 4
    fields = json.loads(table.schema().to_json())["fields"]
    ids = {field["metadata"]["delta.columnMapping.physicalName"]: field["metadata"] for field in fields}
    for file in Path(path).glob("*/*/*.parquet"):
        schema = pq.read_schema(file)
        for field in schema:
            assert int(field.metadata[b"PARQUET:field_id"]) == ids[field.name]["delta.columnMapping.id"]
        assert len(schema) == 4
