"""Streams that read a table, in every release of Spark: rows, table names, plans, schemas and progress."""

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from deltalog.errors import (
    SchemaMismatchError,
)
from deltalog.spark.read import open_streams
from tests.spark.streams.queries import (
    append,
    batches,
    failure,
    finished,
    ids,
    offsets,
    running,
    start,
    stream,
)


def plan_of(frame: DataFrame, checkpoint: Path) -> str:
    """Returns the plan of the last batch of a query."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return str(query._jsq.explainInternal(False))


def test_the_rows_of_the_snapshot_come_first_and_then_the_rows_of_each_commit(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(2), range(2, 4), range(4, 6))
    found, query = finished(stream(spark, path, maxFilesPerTrigger=2), tmp_path / "cp")
    assert ids(found) == [[0, 1, 2, 3], [4, 5]]
    progress = [each for each in query.recentProgress if each["numInputRows"] > 0]
    assert [each["numInputRows"] for each in progress] == [4, 2]
    append(spark, path, range(6, 8), range(8, 9))
    assert ids(batches(stream(spark, path, maxFilesPerTrigger=1), tmp_path / "cp")) == [[6, 7], [8]]
    assert batches(stream(spark, path), tmp_path / "cp") == []
    places = [json.loads(offset) for offset in offsets(tmp_path / "cp")]
    assert [(place["reservoirVersion"], place["index"], place["isStartingVersion"]) for place in places] == [
        (2, 1, True),
        (3, -1, False),
        (4, -1, False),
        (5, -1, False),
    ]


def test_a_stream_reads_a_table_by_name_or_by_path(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    spark.sql(f"CREATE TABLE streamed USING deltalog LOCATION '{path}'")
    try:
        sources = [
            spark.readStream.format("deltalog").load(path),
            spark.readStream.table("streamed"),
            spark.readStream.table(f"deltalog.`{path}`"),
            spark.readStream.option("maxFilesPerTrigger", 1).table("spark_catalog.default.streamed"),
            spark.newSession().readStream.format("delta").option("path", path).load(),
        ]
        for number, source in enumerate(sources):
            assert ids(batches(source, tmp_path / "cp")) == [[number]]
            append(spark, path, range(number + 1, number + 2))
    finally:
        spark.sql("DROP TABLE streamed")


@pytest.mark.newest
def test_a_running_stream_sees_commits_and_stops_immediately(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(1))
    seen: list[int] = []
    query = start(stream(spark, path), tmp_path / "cp", lambda rows, _: seen.append(rows.count()))
    with running(query):
        for number in range(2):
            append(spark, path, range(number, number + 3))
            query.processAllAvailable()
        progress = query.lastProgress
        assert progress is not None
        assert progress["sources"][0]["description"] == f"deltalog[{path}]"
    assert sum(seen) == 7
    assert query.exception() is None
    assert not open_streams._open


def test_files_of_a_batch_are_pruned_by_partitions_and_by_statistics(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    for first in (0, 10, 20):
        frame = spark.range(first, first + 10, 1, 1).withColumn("p", sf.col("id") % 2)
        frame.write.format("deltalog").mode("append").partitionBy("p").save(path)
    by_partition = plan_of(stream(spark, path).where("p = 1"), tmp_path / "a")
    assert "[stream to v3, 3 of 6 files" in by_partition
    assert "PartitionFilters: [isnotnull(p" in by_partition
    by_statistics = plan_of(stream(spark, path).where("id >= 25"), tmp_path / "b")
    assert "[stream to v3, 2 of 6 files" in by_statistics
    for first in (30, 40):  # The commit after the snapshot has several files.
        frame = spark.range(first, first + 10, 1, 2).withColumn("p", sf.col("id") % 2)
        frame.write.format("deltalog").mode("append").partitionBy("p").save(path)
    in_tail = plan_of(stream(spark, path).where("id = 44"), tmp_path / "b")
    assert "[stream from v3 to v5, 1 of 8 files" in in_tail


def test_table_features_apply_to_the_snapshot_and_to_later_commits(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    spark.sql(
        f"CREATE TABLE deltalog.`{path}` (id INT, a STRING DEFAULT 'new', p INT) USING deltalog PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', "
        "'delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (1, 'x', 1), (2, 'y', 1), (3, 'z', 2)")
    spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id = 2")
    spark.sql(f"ALTER TABLE deltalog.`{path}` RENAME COLUMN a TO b")
    spark.sql(f"ALTER TABLE deltalog.`{path}` ALTER COLUMN id TYPE BIGINT")
    assert batches(stream(spark, path), tmp_path / "cp") == [[(1, "x", 1), (3, "z", 2)]]
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES ({2**40}, DEFAULT, NULL)")
    frame = stream(spark, path)
    assert frame.schema == spark.read.format("deltalog").load(path).schema
    assert batches(frame, tmp_path / "cp") == [[(2**40, "new", None)]]


@pytest.mark.newest
def test_deletion_vectors_of_a_later_version_apply(spark: SparkSession, tmp_path: Path, path: str) -> None:
    """When the stream begins, the table's protocol does not have deletion vectors. The table gets them while the stream
    reads it.
    """
    append(spark, path, range(4))
    seen: list[list[int]] = []
    frame = stream(spark, path, ignoreChanges="true")
    query = start(
        frame, tmp_path / "cp", lambda rows, _: seen.append(sorted(row[0] for row in rows.collect()))
    )
    with running(query):
        query.processAllAvailable()
        spark.sql(f"ALTER TABLE deltalog.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id = 1")
        query.processAllAvailable()
    assert [rows for rows in seen if rows] == [[0, 1, 2, 3], [0, 2, 3]]


def test_a_schema_that_changes_between_load_and_start_is_an_error(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    """Otherwise, Spark would fail with an assertion, or return wrong rows if only types differ."""
    append(spark, path, range(1))
    frames = [stream(spark, path), spark.readStream.table(f"deltalog.`{path}`")]
    spark.sql(f"ALTER TABLE deltalog.`{path}` ADD COLUMN more INT")
    newer = stream(spark, path)
    for number, frame in enumerate(frames):
        error, text = failure(frame, tmp_path / str(number))
        assert isinstance(error, SchemaMismatchError)
        assert "load it again" in text
        assert "version 1" in text
    assert batches(newer, tmp_path / "newer") == [[(0, None)]]


@pytest.mark.newest
def test_progress_has_the_metrics_of_the_backlog(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    _, query = finished(stream(spark, path, maxFilesPerTrigger=1), tmp_path / "cp")
    sources = [each["sources"][0] for each in query.recentProgress if each["numInputRows"] > 0]
    assert [int(source["metrics"]["numFilesOutstanding"]) for source in sources] == [2, 1, 0]
    assert [int(source["metrics"]["numVersionsOutstanding"]) for source in sources] == [1, 1, 0]
    size = [int(source["metrics"]["numBytesOutstanding"]) for source in sources]
    assert size[0] > size[1] > size[2] == 0
    # The offset is a dict or a string, depending on the Spark release.
    newest = [re.search(r"reservoirVersion\W+(\d+)", str(source["latestOffset"])) for source in sources]
    assert {found and found[1] for found in newest} == {"3"}
