"""Streams that write to tables. Each batch is one commit, and is written only once."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from deltalog import DeltaTable
from deltalog._internal import SparkWrite
from deltalog.errors import TableAlreadyExistsError
from deltalog.spark.errors import (
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltalog.spark.streams import sink
from tests.spark.session_kinds import without_us
from tests.spark.streams.batches import Batches, ended, files, history, repeat_batch, write, written


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    return Batches(tmp_path / "batches")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def numbers(batches: Batches, *firsts: int) -> None:
    """For each number in `firsts`, adds a batch of three consecutive numbers that begins with it."""
    for first in firsts:
        batches.add(id=[first, first + 1, first + 2])


@pytest.mark.every_spark
def test_each_batch_is_one_commit(spark: SparkSession, batches: Batches, checkpoint: Path, path: str) -> None:
    numbers(batches, 0, 10)
    query = ended(write(batches.read(spark), checkpoint).start(path))
    table = DeltaTable(path)
    assert written(path) == [(id_,) for id_ in (0, 1, 10, 11, 12, 2)]
    assert history(path) == ["STREAMING UPDATE"] * 2
    assert [commit["operationParameters"] for commit in reversed(table.history())] == [
        {"outputMode": "Append", "queryId": str(query.id), "epochId": str(number)} for number in (0, 1)
    ]
    assert table.transaction_versions() == {str(query.id): 1}
    assert [progress["numInputRows"] for progress in query.recentProgress][:2] == [3, 3]
    log = (Path(path) / "_delta_log" / f"{1:020}.json").read_text().splitlines()
    [info] = [json.loads(line)["commitInfo"] for line in log if "commitInfo" in line]
    assert info["isBlindAppend"]
    # The next run of the query continues. A run without new rows commits nothing.
    numbers(batches, 20)
    for _ in range(2):
        ended(write(batches.read(spark), checkpoint).start(path))
        assert (DeltaTable(path).version(), len(written(path))) == (2, 9)
    assert DeltaTable(path).transaction_versions() == {str(query.id): 2}


@pytest.mark.every_spark
def test_a_repeated_batch_is_neither_written_nor_computed(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    numbers(batches, 0, 10)
    ended(write(batches.read(spark), checkpoint).start(path))
    repeat_batch(checkpoint, 1)
    failing = batches.read(spark).select(sf.raise_error(sf.lit("computed")).cast("bigint").alias("id"))
    ended(write(failing, checkpoint).start(path))
    assert (DeltaTable(path).version(), len(written(path)), files(path)) == (1, 6, 2)
    numbers(batches, 20)
    ended(write(batches.read(spark), checkpoint).start(path))
    assert (DeltaTable(path).version(), len(written(path))) == (2, 9)


@pytest.mark.every_spark
def test_complete_mode_replaces_all_rows_in_one_commit(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    """The output mode complete replaces all rows, whatever the session's setting for overwrites of partitions is."""
    batches.add(k=["a", "b"], n=[1, 2])
    batches.add(k=["b", "c"], n=[3, 4])
    sums = batches.read(spark).groupBy("k").agg(sf.sum("n").alias("n"))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        query = ended(write(sums, checkpoint, "complete").partitionBy("k").start(path))
        assert written(path) == [("a", 1), ("b", 5), ("c", 4)]
        assert [progress["numInputRows"] for progress in query.recentProgress][:2] == [2, 2]
        assert [state["numRowsTotal"] for state in query.recentProgress[1]["stateOperators"]] == [3]
        batches.add(k=["a"], n=[10])
        ended(write(sums, checkpoint, "complete").partitionBy("k").start(path))
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert written(path) == [("a", 11), ("b", 5), ("c", 4)]
    assert history(path) == ["STREAMING UPDATE"] * 3
    assert DeltaTable(path).history()[0]["operationParameters"]["outputMode"] == "Complete"
    repeat_batch(checkpoint, 2)
    ended(write(sums, checkpoint, "complete").start(path))
    assert DeltaTable(path).version() == 2


@pytest.mark.every_spark
def test_to_table_creates_the_table(
    spark: SparkSession, batches: Batches, checkpoint: Path, tmp_path: Path
) -> None:
    batches.add(id=[1, 2], p=["a", "b"])
    frame = batches.read(spark)
    try:
        ended(write(frame, checkpoint / "p").partitionBy("p").toTable("of_stream_p"))
        ended(write(frame, checkpoint / "c").clusterBy("P").toTable("of_stream_c"))
        location = str(tmp_path / "elsewhere")
        named = write(frame, checkpoint / "n").option("path", location).option("delta.appendOnly", "true")
        ended(named.toTable("of_stream_n"))
        tables = [
            spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
            for name in ("of_stream_p", "of_stream_c", "of_stream_n")
        ]
        assert [table.partitionColumns for table in tables] == [["p"], [], []]
        assert [table.clusteringColumns for table in tables] == [[], ["p"], []]
        assert tables[2].properties["delta.appendOnly"] == "true"
        # Spark passes the clustering columns a second time, as a property.
        assert not any(name.startswith("__") for table in tables for name in table.properties)
        assert DeltaTable(location).version() == 2
        for name in ("of_stream_p", "of_stream_c", "of_stream_n"):
            assert sorted(map(tuple, spark.table(name).collect())) == [(1, "a"), (2, "b")]
        # If the table exists, a stream may name the same partition columns, or none.
        batches.add(id=[3], p=["c"])
        ended(write(frame, checkpoint / "p").toTable("of_stream_p"))
        ended(write(frame, checkpoint / "c").clusterBy("p").toTable("of_stream_c"))
        ended(write(frame, checkpoint / "n").toTable(f"deltalog.`{location}`"))
        for name in ("of_stream_p", "of_stream_c", "of_stream_n"):
            assert spark.table(name).count() == 3
        with pytest.raises(SchemaMismatchError, match="partitioned by p, not by id"):
            ended(write(frame, checkpoint / "other").partitionBy("id").toTable("of_stream_p"))
        with pytest.raises(InvalidArgumentError, match="clustered by p, not by id"):
            ended(write(frame, checkpoint / "others").clusterBy("id").toTable("of_stream_c"))
    finally:
        for name in ("of_stream_p", "of_stream_c", "of_stream_n"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.every_spark
def test_a_refused_stream_creates_no_table(
    spark: SparkSession, batches: Batches, checkpoint: Path, tmp_path: Path
) -> None:
    """A refused stream leaves no catalog entry and no file, wherever its table would have been created."""
    numbers(batches, 0)
    frame, place = batches.read(spark), tmp_path / "elsewhere"
    counts = frame.groupBy("id").count()
    without = frame.writeStream.format("deltalog").trigger(availableNow=True)
    refused = {
        "output mode update": write(counts, checkpoint, "update"),
        "txnAppId does not apply to streams": write(frame, checkpoint).option("txnAppId", "me"),
        "the stream has no checkpoint": without,
    }
    managed = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")  # type: ignore[union-attr]
    for message, writer in refused.items():
        for name in ("refused_stream", f"deltalog.`{place}`"):
            with pytest.raises(DeltaError, match=message):
                writer.toTable(name)
        with pytest.raises(DeltaError, match=message):
            writer.option("path", str(place)).toTable("refused_stream")
        assert not spark.catalog.tableExists("refused_stream")
        assert not place.exists()
        assert not Path(managed, "refused_stream").exists()
    try:
        # The refused streams have not changed anything.
        ended(write(frame, checkpoint).toTable("refused_stream"))
        assert spark.table("refused_stream").count() == 3
        with pytest.raises(UnsupportedFeatureError, match="output mode update"):
            write(counts, checkpoint / "other", "update").toTable("refused_stream")
        assert spark.table("refused_stream").count() == 3
    finally:
        spark.sql("DROP TABLE IF EXISTS refused_stream")


def test_the_options_of_a_stream_define_the_table_that_it_creates(
    spark: SparkSession, batches: Batches, checkpoint: Path, tmp_path: Path
) -> None:
    batches.add(id=[1, 2], p=["a", "b"])
    frame, name = batches.read(spark), "spark.databricks.delta.properties.defaults.logRetentionDuration"
    spark.conf.set(name, "interval 7 days")
    try:
        options = {"delta.enableDeletionVectors": "true", "userMetadata": "of a stream"}
        ended(write(frame, checkpoint / "p").partitionBy("p").options(**options).start(str(tmp_path / "p")))
    finally:
        spark.conf.unset(name)
    table = DeltaTable(tmp_path / "p")
    assert table.metadata().partition_columns == ["p"]
    assert table.metadata().configuration == {
        "delta.enableDeletionVectors": "true",
        "delta.logRetentionDuration": "interval 7 days",
    }
    assert (table.version(), table.history()[0]["userMetadata"]) == (0, "of a stream")
    ended(write(frame, checkpoint / "c").clusterBy("id").start(str(tmp_path / "c")))
    assert spark.sql(f"DESCRIBE DETAIL deltalog.`{tmp_path / 'c'}`").collect()[0].clusteringColumns == ["id"]
    assert (history(tmp_path / "c"), len(written(tmp_path / "c"))) == (["STREAMING UPDATE"], 2)


@pytest.mark.oldest
def test_update_is_refused_when_the_stream_starts(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    numbers(batches, 0)
    with pytest.raises(UnsupportedFeatureError, match=r"output mode update, only append and complete.*MERGE"):
        write(batches.read(spark).groupBy("id").count(), checkpoint, "update").start(path)
    assert not Path(path).exists()


@pytest.mark.every_spark
def test_the_continuous_trigger_is_refused_when_the_stream_starts(
    spark: SparkSession, checkpoint: Path, path: str
) -> None:
    frame = spark.readStream.format("rate").load().select("value")
    writer = write(frame, checkpoint).trigger(continuous="1 second")
    with pytest.raises(UnsupportedFeatureError, match=r"continuous.*processingTime, availableNow or once"):
        writer.start(path)
    assert not Path(path).exists()


REFUSED: dict[str, dict[str, Any]] = {
    "the option replaceWhere does not apply to streams": {"replaceWhere": "id > 1"},
    "the option baseVersion does not apply to streams": {"baseVersion": 1},
    "the option txnAppId does not apply to streams: each batch records the id of its query": {
        "txnAppId": "job"
    },
    "overwriteSchema needs the output mode complete": {"overwriteSchema": True},
    "a write always changes the newest version": {"versionAsOf": 1},
    "not supported yet": {"startingVersion": 1},
    "mergeschemas is not known for streams .*did you mean mergeSchema": {"mergeSchemas": True},
    "purpose is not known for streams .*known are": {"purpose": "x"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_options_that_do_not_apply_to_streams_are_refused(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str, message: str
) -> None:
    numbers(batches, 0)
    with pytest.raises(DeltaError, match=message):
        write(batches.read(spark), checkpoint).options(**REFUSED[message]).start(path)
    assert not Path(path).exists()


@pytest.mark.every_spark
def test_columns_are_matched_by_name_and_values_are_cast(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    spark.sql(f"CREATE TABLE deltalog.`{path}` (id INT, s STRING, t TIMESTAMP, more INT) USING deltalog")
    batches.add(S=[1, 2], ID=[5, 6], t=["2024-01-01 00:00:00+00:00", None])
    ended(write(batches.read(spark).withColumn("t", sf.to_timestamp("t")), checkpoint).start(path))
    time = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert written(path) == [(5, "1", time, None), (6, "2", None, None)]
    batches.add(S=[3], ID=[2**40], t=["2024-01-01 00:00:00+00:00"])
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        ended(write(batches.read(spark).withColumn("t", sf.to_timestamp("t")), checkpoint).start(path))
    assert (DeltaTable(path).version(), files(path)) == (1, 1)


def test_columns_are_added_on_request(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    numbers(batches, 0)
    ended(write(batches.read(spark), checkpoint).start(path))
    numbers(batches, 10)
    wider = batches.read(spark).withColumn("more", sf.lit("x"))
    with pytest.raises(SchemaMismatchError, match="has no column more"):
        ended(write(wider, checkpoint).start(path))
    assert DeltaTable(path).version() == 0
    ended(write(wider, checkpoint).option("mergeSchema", True).start(path))
    assert written(path)[-1] == (2, None)
    assert len([row for row in written(path) if row[1] == "x"]) == 3
    numbers(batches, 20)
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        ended(write(wider.withColumn("again", sf.lit(1)), checkpoint).start(path))
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert [field.name for field in DeltaTable(path).schema().fields] == ["id", "more", "again"]


def test_complete_mode_may_replace_the_schema(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    spark.sql(f"CREATE TABLE deltalog.`{path}` (k INT, n STRING) USING deltalog PARTITIONED BY (n)")
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (1, 'old')")
    batches.add(k=["a", "b", "a"])
    counts = batches.read(spark).groupBy("k").agg(sf.count("*").alias("rows"))
    with pytest.raises(DeltaError):
        ended(write(counts, checkpoint, "complete").start(path))
    writer = write(counts, checkpoint, "complete").option("overwriteSchema", True).partitionBy("k")
    ended(writer.start(path))
    assert written(path) == [("a", 2), ("b", 1)]
    assert DeltaTable(path).metadata().partition_columns == ["k"]


def test_the_rules_of_the_table_apply(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    spark.sql(f"""
        CREATE TABLE deltalog.`{path}` (
            id BIGINT GENERATED BY DEFAULT AS IDENTITY, n INT, twice INT GENERATED ALWAYS AS (n * 2), old STRING)
        USING deltalog TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.constraints.small' = 'n < 10')""")
    spark.sql(f"ALTER TABLE deltalog.`{path}` RENAME COLUMN old TO label")
    version = DeltaTable(path).version()
    batches.add(n=[1, 2], label=["a", "b"])
    batches.add(n=[3], label=["c"])
    # As in other writes, a column that is always NULL does not count as a value for a generated column.
    nothing = batches.read(spark).withColumn("twice", sf.lit(None).cast("int"))
    ended(write(nothing, checkpoint).start(path))
    rows = written(path)
    assert sorted(row[1:] for row in rows) == [(1, 2, "a"), (2, 4, "b"), (3, 6, "c")]
    assert len({row[0] for row in rows}) == 3
    batches.add(n=[4, 11], label=["d", "e"])
    query = write(batches.read(spark), checkpoint).start(path)
    with pytest.raises(
        InvalidArgumentError, match=r"the table refuses a row: .*small.*nothing was committed"
    ):
        ended(query)
    assert (DeltaTable(path).version(), files(path)) == (version + 2, 2)


def test_errors_name_the_table(spark: SparkSession, batches: Batches, checkpoint: Path, path: str) -> None:
    """A stream raises the same error as a batch write, and listeners of the query get the text of the error."""
    numbers(batches, 0)
    spark.sql(f"CREATE TABLE deltalog.`{path}` (other INT) USING deltalog")
    query = write(batches.read(spark), checkpoint).start(path)
    with pytest.raises(SchemaMismatchError, match="has no column id") as raised:
        ended(query)
    assert isinstance(raised.value, PySparkException)
    exception = query.exception()
    assert exception is not None
    assert "has no column id" in str(exception)
    assert "a table" in str(exception) or "a%20table" in str(exception)


def test_a_column_with_a_watermark_is_a_plain_column_of_the_table(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    batches.add(id=[1], time=[datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)])
    frame = batches.read(spark).withWatermark("time", "1 minute")
    try:
        ended(write(frame, checkpoint / "path").start(path))
        ended(write(frame, checkpoint / "name").toTable("of_watermark"))
        assert "watermark" not in DeltaTable(path).schema().to_json()
        location = spark.sql("DESCRIBE DETAIL of_watermark").collect()[0].location
        assert "watermark" not in DeltaTable(location).schema().to_json()
    finally:
        spark.sql("DROP TABLE IF EXISTS of_watermark")


@pytest.mark.parametrize("has_version", [True, False])
def test_the_application_of_the_session_does_not_apply_to_its_streams(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str, has_version: bool
) -> None:
    numbers(batches, 0, 10)
    name = "spark.databricks.delta.write.txn"
    spark.conf.set(f"{name}AppId", "job")
    if has_version:
        spark.conf.set(f"{name}Version", "1")
    try:
        query = ended(write(batches.read(spark), checkpoint).start(path))
    finally:
        spark.conf.unset(f"{name}AppId")
        spark.conf.unset(f"{name}Version")
    assert DeltaTable(path).transaction_versions() == {str(query.id): 1}


def test_two_streams_write_to_one_table(spark: SparkSession, tmp_path: Path, path: str) -> None:
    queries = []
    for number in range(2):
        batches = Batches(tmp_path / f"batches {number}")
        numbers(batches, *range(100 * number, 100 * number + 50, 10))
        queries.append(write(batches.read(spark), tmp_path / f"checkpoint {number}").start(path))
    for query in queries:
        ended(query)
    rows = written(path)
    assert (len(rows), len(set(rows)), DeltaTable(path).version()) == (30, 30, 9)
    assert DeltaTable(path).transaction_versions() == {str(query.id): 4 for query in queries}


def test_a_batch_that_reads_its_table_conflicts_with_changes(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    numbers(batches, 0, 10)
    spark.range(100, 102).write.format("deltalog").save(path)
    known = spark.read.format("deltalog").load(path)
    ended(write(batches.read(spark).join(known, "id", "left_anti"), checkpoint).start(path))
    assert (len(written(path)), DeltaTable(path).version()) == (8, 2)
    log = (Path(path) / "_delta_log" / f"{2:020}.json").read_text()
    assert '"isBlindAppend":false' in log


def test_optimised_writes_and_auto_compaction_apply_to_batches(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    for _ in range(3):
        batches.add(id=list(range(40)), p=[number % 2 for number in range(40)])
    frame = batches.read(spark).repartition(4)
    query = ended(write(frame, checkpoint).partitionBy("p").option("optimizeWrite", True).start(path))
    assert (DeltaTable(path).version(), files(path)) == (2, 6)
    assert [progress["numInputRows"] for progress in query.recentProgress][:3] == [40] * 3
    batches.add(id=[1], p=[0])
    names = {"enabled": "true", "minNumFiles": "2"}
    for name, value in names.items():
        spark.conf.set(f"spark.databricks.delta.autoCompact.{name}", value)
    try:
        ended(write(frame, checkpoint).start(path))
    finally:
        for name in names:
            spark.conf.unset(f"spark.databricks.delta.autoCompact.{name}")
    assert history(path)[3:] == ["STREAMING UPDATE", "OPTIMIZE"]
    assert len(written(path)) == 121


def test_two_streams_that_create_a_clustered_table_at_one_path(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second stream begins before the first stream has committed. It fails, and appends its rows when it is
    started again.
    """
    numbers(batches, 0, 10)
    frame = batches.read(spark)
    others = iter([checkpoint / "first"])

    class Slow:
        """Pauses the creation of the table after it has begun, so that the other stream creates the table first."""

        @staticmethod
        def define(*arguments: Any) -> Any:
            begun = SparkWrite.define(*arguments)
            for other in others:
                ended(write(frame, other).clusterBy("id").start(path))
            return begun

    monkeypatch.setattr(sink, "SparkWrite", Slow)
    second = write(frame, checkpoint / "second").clusterBy("id")
    expected = "has created the table in the meantime .* nothing was committed; start the query again"
    with pytest.raises(TableAlreadyExistsError, match=expected) as raised:
        ended(second.start(path))
    assert "append to the table, or choose" not in str(raised.value)
    assert (DeltaTable(path).version(), len(written(path)), files(path)) == (1, 6, 2)
    ended(second.start(path))
    assert sorted(written(path)) == sorted(2 * [(id_,) for id_ in (0, 1, 2, 10, 11, 12)])
    assert DeltaTable(path).version() == 3


def test_a_session_without_the_catalog_cannot_write_to_a_table_by_name(
    spark: SparkSession, batches: Batches, checkpoint: Path, path: str
) -> None:
    """Such a stream is refused when it starts. Spark looks up the table again after each batch, so the stream would
    otherwise fail after its first commit.
    """
    numbers(batches, 0)
    spark.sql(f"CREATE TABLE target (id BIGINT) USING deltalog LOCATION '{path}'")
    try:
        other = without_us(spark)
        for name in ("target", "a_new_one"):
            with pytest.raises(UnsupportedFeatureError, match=r"call deltalog\.spark\.enable"):
                write(batches.read(other), checkpoint).toTable(name)
        assert (DeltaTable(path).version(), files(path)) == (0, 0)
        ended(write(batches.read(other), checkpoint).start(path))
        assert len(written(path)) == 3
    finally:
        spark.sql("DROP TABLE target")
