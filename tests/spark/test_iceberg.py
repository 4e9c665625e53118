"""The files that Spark writes to tables with Iceberg compatibility (PROTOCOL, "Iceberg Compatibility V1", "Iceberg
Compatibility V2").
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import deltalog
from tests.iceberg import file_ids, log_ids
from tests.python.place import actions

SCHEMA = "id BIGINT, p STRING, at TIMESTAMP, l ARRAY<ARRAY<INT>>, m MAP<STRING, STRUCT<x: BIGINT, deep: ARRAY<STRING>>>"
ROWS = [
    (1, "a", None, [[1, None], []], {"k": (1, ["deep", None])}),
    (2, "", None, None, {}),
    (3, None, None, [None], None),
]


def shape(path: str) -> list[tuple[str, str, str]]:
    """Returns the leaf columns of a file, with their paths, physical types and logical types."""
    schema = pq.ParquetFile(path).schema
    columns = [schema.column(index) for index in range(len(schema))]
    return [(column.path, column.physical_type, str(column.logical_type)) for column in columns]


@pytest.mark.parametrize("partition_by", [["p"], ["n", "p"], []])
def test_spark_writes_the_files_that_deltalog_writes(
    spark: SparkSession, tmp_path: Path, partition_by: list[str]
) -> None:
    """Spark and deltalog write the same kind of files: columns and their parts have the same field ids, and partition
    columns come last.
    """
    path = str(tmp_path)
    data = spark.createDataFrame(ROWS, SCHEMA).withColumn("n", sf.col("id").cast("decimal(10,2)"))
    writer = data.write.format("deltalog").option("delta.enableIcebergCompatV2", "true")
    writer.partitionBy(*partition_by).save(path)
    table = deltalog.DeltaTable(path)
    assert {
        line["add"]["tags"]["ICEBERG_COMPAT_VERSION"] for line in actions(tmp_path, 0) if "add" in line
    } == {"2"}
    by_spark = table.file_uris()
    deltalog.write_deltalake(path, pa.table(table.to_arrow()), mode="append")
    table.update_incremental()
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    assert len(files) > len(by_spark)
    expected = log_ids(table)
    assert len(expected) == 13
    for file in files:
        assert file_ids(Path(file)) == expected
    assert len({str(shape(file)) for file in files}) == 1
    names = {
        field["name"]: field["metadata"]["delta.columnMapping.physicalName"]
        for field in json.loads(table.schema().to_json())["fields"]
    }
    stored = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
    assert stored.column_names[-1] == names[partition_by[-1] if partition_by else "n"]
    assert sorted(stored.column(names["n"]).to_pylist()) == [1, 1, 2, 2, 3, 3]
    # An empty partition value is NULL, both in the log and in the files.
    values = stored.column(names["p"]).to_pylist()
    assert (
        sorted(values, key=str) == ([None] * 4 if "p" in partition_by else ["", "", None, None]) + ["a"] * 2
    )
    read = spark.read.format("deltalog").load(path)
    assert read.count() == 6
    assert read.where("p IS NULL").count() == values.count(None)


def test_spark_adds_to_a_table_of_version_1(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = pa.table({"p": ["a", "b"], "id": pa.array([1, 2], pa.int64())})
    configuration = {"delta.enableIcebergCompatV1": "true"}
    deltalog.write_deltalake(path, rows, partition_by=["p"], configuration=configuration)
    added = spark.createDataFrame([("c", 3)], "p STRING, id BIGINT")
    added.write.format("deltalog").mode("append").save(path)
    table = deltalog.DeltaTable(path)
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    assert len(files) == 3
    assert {str(shape(file)) for file in files} == {str(shape(files[0]))}
    assert all(file_ids(Path(file)) == log_ids(table) for file in files)
    assert sorted(pa.table(table.to_arrow()).column("p").to_pylist()) == ["a", "b", "c"]


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("partition_by", [["p"], ["n", "p"]])
def test_spark_writes_the_partition_columns_that_a_table_requests(
    spark: SparkSession, tmp_path: Path, partition_by: list[str], mapping: str
) -> None:
    """Protocol RFC: "Materialize Partition Columns"."""
    path = str(tmp_path)
    data = spark.createDataFrame(ROWS, SCHEMA).withColumn("n", sf.col("id").cast("decimal(10,2)"))
    writer = data.write.format("deltalog").option("delta.enableMaterializePartitionColumnsFeature", "true")
    writer.option("delta.columnMapping.mode", mapping).partitionBy(*partition_by).save(path)
    data.write.format("deltalog").mode("append").save(path)
    table = deltalog.DeltaTable(path)
    assert "materializePartitionColumns" in (table.protocol().writer_features or [])
    by_spark = {uri.removeprefix("file://") for uri in table.file_uris()}
    deltalog.write_deltalake(path, pa.table(table.to_arrow()), mode="append")
    table.update_incremental()
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    assert len(files) > len(by_spark)
    # The files that Spark and deltalog write have the same columns.
    assert len({str(shape(file)) for file in files}) == 1
    names = {
        field["name"]: field["metadata"].get("delta.columnMapping.physicalName", field["name"])
        for field in json.loads(table.schema().to_json())["fields"]
    }
    stored = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
    assert stored.column_names[-len(partition_by) :] == [names[name] for name in partition_by]
    assert sorted(map(int, stored.column(names["n"]).to_pylist())) == [1] * 4 + [2] * 4 + [3] * 4
    read = spark.read.format("deltalog").load(path)
    assert read.count() == 12
    assert read.where("p IS NULL").count() == 8
    assert read.where("n = 1").select("p").distinct().collect() == [("a",)]


def test_spark_writes_to_a_table_of_version_3(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    data = spark.createDataFrame(ROWS, SCHEMA)
    writer = data.write.format("deltalog").option("delta.enableIcebergCompatV3", "true")
    writer.partitionBy("p").save(path)
    data.coalesce(1).where("id > 1").write.format("deltalog").mode("overwrite").option(
        "replaceWhere", "id > 1"
    ).save(path)
    table = deltalog.DeltaTable(path)
    assert {"rowTracking", "icebergCompatV3"} <= set(table.protocol().writer_features or [])
    expected = log_ids(table)
    for uri in table.file_uris():
        assert file_ids(Path(uri.removeprefix("file://"))) == expected
    found = spark.read.format("deltalog").load(path).selectExpr("id", "_metadata.row_id").collect()
    assert len({row.row_id for row in found}) == len(found) == 3
