"""Reading: by path, by name, at a version; columns, types and filters as with Spark's own Parquet."""

import datetime
import decimal
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import deltalog
import deltalog.spark
from deltalog import VersionNotFoundError


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.fixture
def table(path: str) -> str:
    """Two commits of an independent writer; the partition column stands in the middle."""
    first = pa.table({"a": pa.array([1, 2], pa.int32()), "p": ["x", "y"], "v": [1.5, 2.5]})
    write_deltalake(path, first, partition_by=["p"])
    write_deltalake(path, pa.table({"a": pa.array([3], pa.int32()), "p": pa.array([None], pa.string()), "v": [3.5]}), mode="append")
    return path


def test_columns_come_in_the_tables_order_from_every_entry_point(spark: SparkSession, table: str) -> None:
    frames = [
        spark.read.format("deltalog").load(table),
        spark.table(f"deltalog.`{table}`"),
        spark.sql(f"SELECT * FROM deltalog.`{table}`"),
        deltalog.spark.DeltaTable.forPath(spark, table).toDF(),
    ]
    for frame in frames:
        assert frame.columns == ["a", "p", "v"]
        assert rows(frame) == [(1, "x", 1.5), (2, "y", 2.5), (3, None, 3.5)]


def test_the_scan_is_sparks_own_parquet_scan(spark: SparkSession, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    frame = spark.table(f"deltalog.`{table}`").where("p = 'x' AND a < 10").select("v")
    assert rows(frame) == [(1.5,)]
    frame.explain()
    plan = capsys.readouterr().out
    assert "FileScan parquet" in plan
    assert "ReadSchema: struct<a:int,v:double>" in plan
    assert "PushedFilters: [IsNotNull(a), LessThan(a,10)]" in plan
    assert "[v1, file:/" in plan
    assert "Python" not in plan


def test_partitions_are_pruned_and_the_log_says_so(spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture) -> None:
    frame = spark.table(f"deltalog.`{table}`").where("p = 'x'")
    with caplog.at_level(logging.INFO, logger="deltalog.spark"):
        frame.collect()
    assert any("v1: 1 of 3 files" in message for message in caplog.messages)
    metric = frame._jdf.queryExecution().executedPlan().collectLeaves().head().metrics().apply("numFiles")
    assert metric.value() == 1


def test_versions_and_timestamps(spark: SparkSession, table: str) -> None:
    assert spark.read.format("deltalog").option("versionAsOf", 0).load(table).count() == 2
    assert spark.sql(f"SELECT * FROM deltalog.`{table}` VERSION AS OF 0").count() == 2
    with pytest.raises(VersionNotFoundError, match="versions 0 to 1"):
        spark.read.format("deltalog").option("timestampAsOf", "2100-01-01").load(table)
    newest = datetime.datetime.fromtimestamp(
        deltalog.DeltaTable(table).history(1)[0]["timestamp"] / 1000, datetime.timezone.utc
    ).isoformat()
    assert spark.read.format("deltalog").option("timestampAsOf", newest).load(table).count() == 3
    assert spark.sql(f"SELECT * FROM deltalog.`{table}` TIMESTAMP AS OF '{newest}'").count() == 3
    both = spark.sql(f"SELECT count(*) FROM deltalog.`{table}` VERSION AS OF 0 UNION ALL SELECT count(*) FROM deltalog.`{table}`")
    assert rows(both) == [(2,), (3,)]


def test_a_dataframe_keeps_its_snapshot_and_a_name_sees_the_newest(spark: SparkSession, table: str) -> None:
    pinned = [spark.read.format("deltalog").load(table), spark.table(f"deltalog.`{table}`")]
    write_deltalake(table, pa.table({"a": pa.array([4], pa.int32()), "p": ["x"], "v": [4.5]}), mode="overwrite")
    for frame in pinned:
        assert frame.count() == 3
    assert spark.table(f"deltalog.`{table}`").count() == 1
    assert spark.read.format("deltalog").load(table).count() == 1


def test_file_metadata(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("deltalog").load(table)
    found = frame.select("_metadata.file_path", "_metadata.file_size", "_metadata.row_index").collect()
    assert len(found) == 3
    files = list(Path(table).rglob("*.parquet"))
    assert {Path(row.file_path.removeprefix("file://")).name for row in found} == {file.name for file in files}
    assert {row.file_size for row in found} == {file.stat().st_size for file in files}
    assert {row.row_index for row in found} == {0}
    assert len(frame.inputFiles()) == 3


PARTITION_VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 127]),
    (pa.int16(), [-32768, 32767]),
    (pa.int32(), [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1]),
    (pa.float32(), [1.5, -0.25]),
    (pa.float64(), [0.1, -2.5e10]),
    (pa.decimal128(38, 10), [decimal.Decimal("1234567890123456789012345678.0123456789"), decimal.Decimal("0.0000000001")]),
    (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    (pa.string(), ["a/b=c%20 d", "é🙂"]),
]


def test_partition_values_come_typed_from_the_log(spark: SparkSession, path: str) -> None:
    """PROTOCOL.md, "Partition Value Serialization": another writer's, a partition column of each type."""
    columns = {f"p{i}": pa.array([*values, None], kind) for i, (kind, values) in enumerate(PARTITION_VALUES)}
    write_deltalake(path, pa.table({**columns, "n": pa.array([0, 1, 2], pa.int64())}), partition_by=list(columns))
    found = spark.read.format("deltalog").load(path).orderBy("n").collect()
    for i, (kind, values) in enumerate(PARTITION_VALUES):
        assert [row[f"p{i}"] for row in found] == [*values, None], kind


def test_self_join_and_subquery_in_one_plan(spark: SparkSession, table: str) -> None:
    joined = spark.sql(
        f"SELECT count(*) FROM deltalog.`{table}` l JOIN deltalog.`{table}` r ON l.p = r.p WHERE l.a IN (SELECT a FROM deltalog.`{table}`)"
    )
    assert rows(joined) == [(2,)]


def test_caching_a_dataframe_keeps_versions_apart(spark: SparkSession, table: str) -> None:
    old = spark.read.format("deltalog").option("versionAsOf", 0).load(table).cache()
    try:
        assert old.count() == 2
        assert spark.read.format("deltalog").load(table).count() == 3
        assert spark.read.format("deltalog").load(table).agg(sf.max("a")).collect()[0][0] == 3
    finally:
        old.unpersist()


def test_a_missing_file_is_an_error_whatever_the_session_says(spark: SparkSession, table: str) -> None:
    next(Path(table, "p=x").glob("*.parquet")).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match=r"(?i)not exist"):
            spark.read.format("deltalog").load(table).collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
