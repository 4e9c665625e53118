"""Spark writes variants without shredding, regardless of the session's settings (table feature `variantType`)."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from tests import variants

SHREDDING = "spark.sql.variant.writeShredding.enabled"
FORCED = "spark.sql.variant.forceShreddingSchemaForTest"


@pytest.fixture(params=["", "a int"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Returns a session whose settings would make Spark shred variants."""
    spark.conf.set(SHREDDING, "true")
    if request.param:
        spark.conf.set(FORCED, request.param)
    yield spark
    spark.conf.unset(SHREDDING)
    spark.conf.unset(FORCED)


def test_variants_of_spark_are_read_by_python_and_by_spark(session: SparkSession, path: str) -> None:
    texts = [text for text in variants.TEXTS if text is not None]
    data = session.createDataFrame(list(enumerate(texts)), "id BIGINT, j STRING")
    data = data.selectExpr("id", "parse_json(j) AS v", "array(parse_json(j)) AS l")
    data.write.format("deltalog").save(path)
    data.write.format("deltalog").mode("append").save(path)
    found = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    values = [value for value in variants.VALUES if value is not None]
    assert [row["v"] for row in found][::2] == values
    assert [row["l"] for row in found][1::2] == [[value] for value in values]
    for file in Path(path).rglob("*.parquet"):
        columns = pq.ParquetFile(file).schema
        assert "typed_value" not in {
            part for i in range(len(columns)) for part in columns.column(i).path.split(".")
        }
    read = session.read.format("deltalog").load(path)
    rows = read.selectExpr("id", "to_json(v) AS v", "to_json(l[0]) AS l").orderBy("id").distinct().collect()
    assert sorted((row.id, row.v, row.l) for row in rows) == [(i, text, text) for i, text in enumerate(texts)]


def test_variants_of_python_are_read_and_overwritten_by_spark(spark: SparkSession, path: str) -> None:
    write_deltalake(path, variants.table())
    read = spark.read.format("deltalog").load(path)
    shown = read.selectExpr(
        "to_json(v) AS v", "to_json(s.v) AS s", "to_json(l[1]) AS l", "to_json(m['k']) AS m"
    )
    assert [set(row) for row in shown.orderBy("id").collect()] == [{text} for text in variants.TEXTS]
    read.write.format("deltalog").mode("overwrite").save(path)
    assert DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist() == variants.table().to_pylist()
