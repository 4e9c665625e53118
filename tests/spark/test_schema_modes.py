"""Writes that change the schema of the table."""

import pickle
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import deltalog
from deltalog.spark.errors import DeltaError, InvalidArgumentError, SchemaMismatchError
from deltalog.spark.portable import DeltalogDataSource, DeltalogWriter

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"


def rows(path: str) -> list[dict[str, Any]]:
    return sorted(deltalake.DeltaTable(path).to_pyarrow_table().to_pylist(), key=repr)


def save(spark: SparkSession, path: str, query: str, mode: str = "append", **options: str) -> None:
    spark.sql(query).write.format("deltalog").mode(mode).options(**options).save(path)


def test_columns_are_added_at_every_depth(spark: SparkSession, path: str) -> None:
    save(spark, path, "SELECT 1 AS id, named_struct('x', 1) AS s, array(named_struct('x', 1)) AS l")
    query = "SELECT 'n' AS n, named_struct('y', 'y', 'X', 2) AS s, array(named_struct('x', 2, 'y', 'y')) AS l, 2 AS ID"
    with pytest.raises((SchemaMismatchError, AnalysisException)):
        save(spark, path, query)
    save(spark, path, query, mergeSchema="true")
    old, new = {"x": 1, "y": None}, {"x": 2, "y": "y"}
    assert rows(path) == [
        {"id": 1, "s": old, "l": [old], "n": None},
        {"id": 2, "s": new, "l": [new], "n": "n"},
    ]
    assert spark.read.format("deltalog").load(path).where("n IS NULL").count() == 1
    save(spark, path, "SELECT 3 AS id, true AS b", mode="overwrite", mergeSchema="true")
    assert rows(path) == [{"id": 3, "s": None, "l": None, "n": None, "b": True}]


def test_the_setting_of_the_session_merges(spark: SparkSession, path: str) -> None:
    save(spark, path, "SELECT 1 AS a")
    spark.conf.set(AUTO_MERGE, "true")
    try:
        with pytest.raises((SchemaMismatchError, AnalysisException)):
            save(spark, path, "SELECT 2 AS b", mergeSchema="false")
        save(spark, path, "SELECT 2 AS b")
    finally:
        spark.conf.unset(AUTO_MERGE)
    assert rows(path) == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    with pytest.raises((SchemaMismatchError, AnalysisException)):
        save(spark, path, "SELECT 3 AS c")


def test_an_overwrite_replaces_schema_and_partitioning(spark: SparkSession, path: str) -> None:
    spark.sql("SELECT 1 AS a, 'x' AS p").write.format("deltalog").partitionBy("p").save(path)
    query = "SELECT 'y' AS a, 2 AS q"
    with pytest.raises((SchemaMismatchError, AnalysisException)):
        save(spark, path, query, mode="overwrite")
    writer = spark.sql(query).write.format("deltalog").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("q").save(path)
    assert rows(path) == [{"a": "y", "q": 2}]
    assert deltalake.DeltaTable(path).metadata().partition_columns == ["q"]
    read = spark.read.format("deltalog").load(path).selectExpr("upper(a) AS a", "q", "q + 1 AS r")
    read.write.format("deltalog").mode("overwrite").option("overwriteSchema", "true").save(path)
    assert rows(path) == [{"a": "Y", "q": 2, "r": 3}]
    assert spark.read.format("deltalog").option("versionAsOf", 0).load(path).columns == ["a", "p"]


def test_tables_with_mapped_columns_get_new_ones(spark: SparkSession, path: str) -> None:
    """Protocol: "Writer Requirements for Column Mapping"."""
    save(spark, path, "SELECT 1 AS a", **{"delta.columnMapping.mode": "name"})
    save(spark, path, "SELECT 2 AS a, named_struct('x', 1) AS `b c`", mergeSchema="true")
    found = spark.read.format("deltalog").load(path).orderBy("a").collect()
    assert [row.asDict(recursive=True) for row in found] == [{"a": 1, "b c": None}, {"a": 2, "b c": {"x": 1}}]
    save(spark, path, "SELECT 'x' AS c", mode="overwrite", overwriteSchema="true")
    assert pa.table(deltalog.DeltaTable(path).to_arrow()).to_pylist() == [{"c": "x"}]


def test_options_that_contradict_each_other_are_refused(spark: SparkSession, path: str) -> None:
    save(spark, path, "SELECT 1 AS a")
    with pytest.raises(InvalidArgumentError, match="mergeSchema must be true or false, not 'yes'"):
        save(spark, path, "SELECT 1 AS a", mergeSchema="yes")
    with pytest.raises(DeltaError, match="cannot overwrite the schema"):
        save(spark, path, "SELECT 1 AS a", overwriteSchema="true")
    with pytest.raises(DeltaError, match="cannot overwrite the schema"):
        save(spark, path, "SELECT 1 AS a", mode="overwrite", overwriteSchema="true", replaceWhere="a = 1")


@pytest.mark.parametrize("mapping", [None, {"delta.columnMapping.mode": "name"}])
def test_the_portable_source_changes_the_schema(tmp_path: Path, mapping: dict[str, str] | None) -> None:
    path = str(tmp_path / "t")
    deltalog.write_deltalake(path, pa.table({"a": [1]}), configuration=mapping)

    def write(schema: str, overwrite: bool, columns: dict[str, Any], **options: str) -> None:
        source = DeltalogDataSource({"path": path, **options})
        columns_written = StructType.fromDDL(schema)
        assert isinstance(columns_written, StructType)
        writer = source.writer(columns_written, overwrite)
        assert isinstance(writer, DeltalogWriter)
        messages = [
            pickle.loads(pickle.dumps(writer)).write(iter([pa.RecordBatch.from_pydict(columns)]))  # noqa: S301
            for _ in range(2)
        ]
        writer.commit(messages)

    write("a long, b string", False, {"a": [2], "b": ["x"]}, mergeSchema="true")
    found = sorted(pa.table(deltalog.DeltaTable(path).to_arrow()).to_pylist(), key=repr)
    assert found == [{"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": 2, "b": "x"}]
    write("c string", True, {"c": ["y"]}, overwriteSchema="true", baseVersion="newest")
    assert pa.table(deltalog.DeltaTable(path).to_arrow()).to_pylist() == [{"c": "y"}] * 2
