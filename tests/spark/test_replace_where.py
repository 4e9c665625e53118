"""Overwrites that replace the rows for which a predicate is true."""

import datetime
import pickle
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import deltalog
from deltalog.spark.errors import CommitConflictError, DeltaError, InvalidArgumentError
from deltalog.spark.portable import DeltalogDataSource, DeltalogWriter

SCHEMA = "a int, p string"
CHECK = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
MODE = "spark.sql.sources.partitionOverwriteMode"
OLD = [(1, "x"), (2, "y"), (3, None), (4, "x")]


def rows(path: str) -> list[tuple[int, str | None]]:
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    return sorted((row["a"], row["p"]) for row in table.to_pylist())


@pytest.fixture(params=[True, False], ids=["partitioned", "plain"])
def table(request: pytest.FixtureRequest, spark: SparkSession, path: str) -> str:
    writer = spark.createDataFrame(OLD, SCHEMA).coalesce(1).write.format("deltalog")
    (writer.partitionBy("p") if request.param else writer).save(path)
    return path


def replace(data: DataFrame, path: str, predicate: str, **options: str) -> None:
    data.write.format("deltalog").mode("overwrite").options(replaceWhere=predicate, **options).save(path)


def test_only_rows_for_which_the_predicate_is_true_are_replaced(spark: SparkSession, table: str) -> None:
    replace(spark.createDataFrame([(5, "x")], SCHEMA), table, "p = 'x'")
    assert rows(table) == [(2, "y"), (3, None), (5, "x")]
    replace(spark.createDataFrame([(7, "z")], SCHEMA), table, "a >= 3 AND p IS NOT NULL")
    assert rows(table) == [(2, "y"), (3, None), (7, "z")]
    assert deltalog.DeltaTable(table).history()[0]["operationParameters"] == {
        "mode": "Overwrite",
        "partitionBy": "[]",
        "predicate": "a >= 3 AND p IS NOT NULL",
    }
    spark.conf.set(MODE, "dynamic")
    try:
        replace(spark.createDataFrame([], SCHEMA), table, "a < 3")
    finally:
        spark.conf.unset(MODE)
    assert rows(table) == [(3, None), (7, "z")]


def test_every_row_must_meet_the_predicate(spark: SparkSession, table: str) -> None:
    before = set(Path(table).rglob("*.parquet"))
    for wrong in ((5, "y"), (5, None)):
        with pytest.raises((DeltaError, PySparkException), match=r"replaceWhere.*p = 'x'"):
            # The rows are in a single task. With several tasks, one might end just as the job fails.
            replace(spark.createDataFrame([(5, "x"), wrong], SCHEMA).coalesce(1), table, "p = 'x'")
    assert set(Path(table).rglob("*.parquet")) == before
    assert rows(table) == sorted(OLD, key=lambda row: row[0])
    spark.conf.set(CHECK, "false")
    try:
        replace(spark.createDataFrame([(5, "y")], SCHEMA), table, "p = 'x'")
    finally:
        spark.conf.unset(CHECK)
    assert rows(table) == [(2, "y"), (3, None), (5, "y")]


def test_rows_of_a_new_table_must_meet_the_predicate(spark: SparkSession, path: str) -> None:
    with pytest.raises(InvalidArgumentError, match="replaceWhere"):
        replace(spark.createDataFrame([(1, "y")], SCHEMA), path, "p = 'x'")
    assert not list(Path(path).rglob("*.json"))
    replace(spark.createDataFrame([(1, "x")], SCHEMA), path, "p = 'x'")
    assert rows(path) == [(1, "x")]


def test_times_are_in_the_sessions_time_zone(spark: SparkSession, path: str) -> None:
    """Times in predicates are in the session's time zone, here New York, five hours behind UTC."""
    spark.sql(
        "SELECT timestampadd(HOUR, id, TIMESTAMP'2024-01-01 00:00:00Z') AS t FROM range(10)"
    ).write.format("deltalog").save(path)
    new = spark.sql("SELECT TIMESTAMP'2024-01-01 12:00:00' AS t")
    replace(new, path, "t >= TIMESTAMP'2024-01-01 00:00:00'")
    found = sorted(row["t"] for row in deltalake.DeltaTable(path).to_pyarrow_table().to_pylist())
    zone = datetime.timezone.utc
    first = [datetime.datetime(2024, 1, 1, hour, tzinfo=zone) for hour in range(5)]
    assert found == [*first, datetime.datetime(2024, 1, 1, 17, tzinfo=zone)]


def test_options_that_contradict_each_other_are_refused(spark: SparkSession, table: str) -> None:
    data = spark.createDataFrame([(5, "x")], SCHEMA)
    with pytest.raises(InvalidArgumentError, match="not both"):
        replace(data, table, "p = 'x'", partitionOverwriteMode="dynamic")
    with pytest.raises(InvalidArgumentError, match="only in the mode overwrite"):
        data.write.format("deltalog").mode("append").option("replaceWhere", "p = 'x'").save(table)
    with pytest.raises(DeltaError, match="unknown_column"):
        replace(data, table, "unknown_column = 1")


def test_rows_that_were_read_are_the_base(spark: SparkSession, table: str) -> None:
    read = spark.read.format("deltalog").load(table).where("p = 'x'")
    spark.createDataFrame([(9, "y")], SCHEMA).write.format("deltalog").mode("append").save(table)
    replace(read.selectExpr("a * 10 AS a", "p"), table, "p = 'x'")
    assert rows(table) == [(2, "y"), (3, None), (9, "y"), (10, "x"), (40, "x")]
    spark.createDataFrame([(9, "x")], SCHEMA).write.format("deltalog").mode("append").save(table)
    with pytest.raises(CommitConflictError):
        replace(read, table, "p = 'x'")


def test_the_portable_source_replaces_the_same_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    deltalog.write_deltalake(path, pa.table({"a": [1, 2, 3], "p": ["x", "y", None]}), partition_by=["p"])

    def write(predicate: str, **columns: Any) -> None:
        source = DeltalogDataSource({"path": path, "replaceWhere": predicate, "baseVersion": "newest"})
        writer = source.writer(StructType().add("a", "long").add("p", "string"), overwrite=True)
        assert isinstance(writer, DeltalogWriter)
        task = pickle.loads(pickle.dumps(writer))  # noqa: S301
        writer.commit([task.write(iter([pa.RecordBatch.from_pydict(columns)]))])

    write("p = 'x'", a=[4], p=["x"])
    write("a > 2 AND p IS NULL", a=[5], p=pa.array([None], pa.string()))
    assert rows(path) == [(2, "y"), (4, "x"), (5, None)]
    with pytest.raises(deltalog.InvalidArgumentError, match="replaceWhere"):
        write("p = 'x'", a=[4], p=["y"])
    for zone, message in [("", "does not know the zone of the session"), ("+00:00", "no column t")]:
        with pytest.raises(deltalog.InvalidArgumentError, match=message):
            write(f"t > TIMESTAMP '2024-01-01 00:00:00{zone}'", a=[4], p=["x"])


@pytest.mark.parametrize("partition_by", [["p"], []], ids=["partitioned", "plain"])
def test_rows_that_are_copied_keep_their_ids(spark: SparkSession, path: str, partition_by: list[str]) -> None:
    """PROTOCOL, "Row Tracking": "When a row is updated or copied, the stable Row ID for this row is preserved"."""
    writer = spark.createDataFrame(OLD, SCHEMA).coalesce(1).write.format("deltalog")
    writer.option("delta.enableRowTracking", "true").partitionBy(*partition_by).save(path)

    def tracked() -> dict[int, tuple[int, int]]:
        found = spark.read.format("deltalog").load(path)
        ids = found.selectExpr("a", "_metadata.row_id", "_metadata.row_commit_version").collect()
        assert len({row.row_id for row in ids}) == len(ids)
        return {row.a: (row.row_id, row.row_commit_version) for row in ids}

    before = tracked()
    replace(spark.createDataFrame([(1, "new")], SCHEMA), path, "a = 1")
    after = tracked()
    assert {a: after.pop(a) for a in (2, 3, 4)} == {a: before[a] for a in (2, 3, 4)}
    ((row_id, version),) = after.values()
    assert (row_id > max(row_id for row_id, _ in before.values()), version) == (True, 1)
    files = [pq.ParquetFile(file) for file in Path(path).rglob("*.parquet")]
    copied = [file for file in files if any("row-id" in name for name in file.schema_arrow.names)]
    assert [file.metadata.num_rows for file in copied] == [1 if partition_by else 3]
