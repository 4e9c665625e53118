"""Spark writes strings with a collation, and compares them by it (table feature `collations`)."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from deltalog.errors import InvalidArgumentError
from tests.crafted import CraftedTable, field

KEY = "__COLLATIONS"


def collations(uri: str) -> dict[str, object]:
    fields = json.loads(DeltaTable(uri).schema().to_json())["fields"]
    return {column["name"]: column["metadata"][KEY] for column in fields if KEY in column["metadata"]}


def test_collations_of_a_table_are_kept_and_its_constraints_use_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = CraftedTable(
        tmp_path / "t",
        [field("id", "long"), field("s", "string", {KEY: {"s": "spark.UTF8_LCASE"}})],
        writer_features=["collations", "domainMetadata", "checkConstraints"],
        configuration={"delta.constraints.c": "s <> 'X'"},
    )
    uri = str(table.commit())
    data = spark.sql("SELECT id, IF(id = 1, 'B', 'a') AS s FROM range(1, 3)")
    data.write.format("deltalog").mode("append").save(uri)
    assert collations(uri) == {"s": {"s": "spark.UTF8_LCASE"}}
    found = spark.read.format("deltalog").load(uri)
    assert [row.id for row in found.where("s = 'b'").collect()] == [1]
    assert [row.id for row in found.where("s < 'b'").collect()] == [2]
    with pytest.raises(InvalidArgumentError, match="'c'"):
        spark.sql("SELECT 3 AS id, 'x' AS s").write.format("deltalog").mode("append").save(uri)


def test_a_new_table_has_the_collations_of_the_data(spark: SparkSession, path: str) -> None:
    data = spark.sql("SELECT 1 AS id, 'B' COLLATE UTF8_LCASE AS s, array('C' COLLATE UNICODE_CI) AS l")
    data.write.format("deltalog").save(path)
    assert set(collations(path)) == {"s", "l"}
    assert {"collations", "domainMetadata"} <= set(DeltaTable(path).protocol().writer_features or [])
    found = spark.read.format("deltalog").load(path)
    for name in ("s", "l"):
        assert found.schema[name].dataType.simpleString() == data.schema[name].dataType.simpleString()
    assert found.where("s = 'b' AND array_contains(l, 'c' COLLATE UNICODE_CI)").count() == 1
