"""Streams that read a table: triggers, options, and schema changes."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import deltalog
from deltalog.errors import (
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from tests.spark.streams.queries import (
    append,
    batches,
    ids,
    running,
    start,
    stream,
)


@pytest.mark.parametrize(
    "trigger", [pytest.param({"once": True}, marks=pytest.mark.thorough), {"availableNow": True}], ids=str
)
def test_available_now_reads_the_rows_that_exist_when_the_query_starts(
    spark: SparkSession, tmp_path: Path, path: str, trigger: dict[str, Any]
) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    seen = []

    def each(rows: DataFrame, number: int) -> None:
        seen.append(rows.count())
        append(spark, path, range(10 + number, 11 + number))

    start(stream(spark, path, maxFilesPerTrigger=2), tmp_path / "cp", each, **trigger).awaitTermination()
    assert seen == ([3] if "once" in trigger else [2, 1])


@pytest.mark.thorough
def test_max_bytes_per_trigger_limits_a_batch(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    assert ids(batches(stream(spark, path, maxBytesPerTrigger="1b"), tmp_path / "a")) == [[0], [1], [2]]
    assert ids(batches(stream(spark, path, maxBytesPerTrigger="1 GB"), tmp_path / "b")) == [[0, 1, 2]]


def test_starting_version_and_timestamp(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    table = deltalog.DeltaTable(path)
    moments = {commit["version"]: commit["timestamp"] for commit in table.history()}
    later = datetime.fromtimestamp(moments[1] / 1000, timezone.utc).isoformat()
    first = min(version for version in moments if moments[version] >= moments[1])
    cases: list[tuple[dict[str, Any], int]] = [
        ({"startingVersion": 1}, 1),
        ({"startingTimestamp": later}, first),
        ({"startingVersion": "latest"}, 3),
    ]
    for number, (options, version) in enumerate(cases):
        found = ids(batches(stream(spark, path, **options), tmp_path / str(number)))
        assert [value for rows in found for value in rows] == list(range(version, 3)), options


@pytest.mark.thorough
def test_a_checkpoint_has_precedence_over_the_starting_version(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(1), range(1, 2))
    assert ids(batches(stream(spark, path, startingVersion=1), tmp_path / "cp")) == [[1]]
    append(spark, path, range(2, 3))
    assert ids(batches(stream(spark, path, startingVersion=0), tmp_path / "cp")) == [[2]]


def test_options_for_commits_that_change_rows(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(4), range(4, 8))
    spark.sql(
        f"DELETE FROM deltalog.`{path}` WHERE id < 4"
    )  # A DELETE of all rows of a file, which removes the file.
    spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id = 5")

    def of(name: str, **options: Any) -> list[Any]:
        found = ids(batches(stream(spark, path, **options), tmp_path / name))
        return sorted(value for rows in found for value in rows)

    with pytest.raises(UnsupportedFeatureError, match="ignoreDeletes") as refused:
        of("deletes", startingVersion=2)
    assert "version 2" in str(refused.value)
    assert path.rsplit("/", 1)[1].split(" ")[0] in str(refused.value)
    with pytest.raises(UnsupportedFeatureError, match="skipChangeCommits"):
        of("changes", startingVersion=2, ignoreDeletes="true")
    assert of("skipped", startingVersion=2, skipChangeCommits="true") == []
    assert of("ignored", startingVersion=2, ignoreChanges="true") == [4, 6, 7]
    assert of("older name", startingVersion=2, ignoreFileDeletion="true") == [4, 6, 7]
    assert of("snapshot") == [4, 6, 7]


def test_rows_that_only_move_are_not_read_again(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[0, 1]]
    spark.sql(f"OPTIMIZE deltalog.`{path}`")
    append(spark, path, range(2, 3))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[2]]


@pytest.mark.thorough
def test_excluded_files_are_left_out(spark: SparkSession, tmp_path: Path, path: str) -> None:
    frame = spark.range(0, 4, 1, 1).withColumn("p", sf.col("id") % 2)
    frame.write.format("deltalog").partitionBy("p").save(path)
    assert ids(batches(stream(spark, path, excludeRegex=r"p=\d/"), tmp_path / "all")) == [[]]
    assert ids(batches(stream(spark, path, excludeRegex="p=1"), tmp_path / "cp")) == [[0, 2]]


def test_a_new_column_ends_a_running_stream_once(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    seen: list[int] = []
    query = start(stream(spark, path), tmp_path / "cp", lambda rows, _: seen.append(rows.count()))
    with running(query):
        query.processAllAvailable()
        spark.sql(f"ALTER TABLE deltalog.`{path}` ADD COLUMN more INT")
        spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (7, 8)")
        with pytest.raises(SchemaMismatchError, match="open the stream again"):
            query.awaitTermination(60)
    assert batches(stream(spark, path), tmp_path / "cp") == [[(7, 8)]]


@pytest.mark.thorough
def test_a_schema_of_the_user_must_match_the_table(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    reader = spark.readStream.format("deltalog")
    assert ids(batches(reader.schema("id LONG").load(path), tmp_path / "cp")) == [[0]]
    with pytest.raises(InvalidArgumentError, match="does not match"):
        spark.readStream.format("deltalog").schema("id INT").load(path)


def test_a_restart_does_not_read_a_finished_batch_again(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    """When a query is restarted, Spark asks for the plan of the last batch again, but does not run it, so its files
    are not read.
    """
    append(spark, path, range(1), range(1, 2), range(2, 3))
    assert ids(batches(stream(spark, path, startingVersion=1), tmp_path / "cp")) == [[1, 2]]
    spark.sql(f"OPTIMIZE deltalog.`{path}`")
    table = deltalog.DeltaTable(path)
    table.create_checkpoint()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    for version in range(3):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()
    append(spark, path, range(3, 4))
    assert ids(batches(stream(spark, path, startingVersion=1), tmp_path / "cp")) == [[3]]


@pytest.mark.thorough
def test_two_streams_of_one_table_are_independent(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(2), range(2, 4))
    both = stream(spark, path, maxFilesPerTrigger=1).unionAll(stream(spark, path, startingVersion=1))
    found = batches(both, tmp_path / "cp")
    assert sorted(value for rows in ids(found) for value in rows) == [0, 1, 2, 2, 3, 3]


def test_a_stream_of_the_change_feed(spark: SparkSession, tmp_path: Path, path: str) -> None:
    spark.sql(
        f"CREATE TABLE deltalog.`{path}` (id INT, v STRING, p INT) USING deltalog PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (1, 'a', 1), (2, 'b', 2)")
    frame = stream(spark, path, readChangeFeed="true")
    assert frame.columns[3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    kept = ("id", "v", "p", "_change_type", "_commit_version")
    inserts = [(1, "a", 1, "insert", 1), (2, "b", 2, "insert", 1)]
    assert batches(frame.select(*kept), tmp_path / "cp") == [inserts]
    spark.sql(f"UPDATE deltalog.`{path}` SET v = 'c' WHERE id = 1")
    spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id = 2")
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (3, 'd', 1)")
    frame = stream(spark, path, readChangeFeed="true", maxFilesPerTrigger=1).select(*kept)
    assert batches(frame, tmp_path / "cp") == [
        [(1, "a", 1, "update_preimage", 2), (1, "c", 1, "update_postimage", 2)],
        [(2, "b", 2, "delete", 3)],
        [(3, "d", 1, "insert", 4)],
    ]
    pruned = stream(spark, path, readChangeFeed="true", startingVersion=2).where("p = 2").select(*kept)
    assert batches(pruned, tmp_path / "pruned") == [[(2, "b", 2, "delete", 3)]]


def test_a_stream_with_schema_tracking_continues_after_a_rename(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    spark.sql(
        f"CREATE TABLE deltalog.`{path}` (id INT, a STRING) USING deltalog "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (1, 'x')")
    checkpoint = tmp_path / "cp"

    def tracked(**options: Any) -> DataFrame:
        return stream(spark, path, schemaTrackingLocation=str(checkpoint), **options)

    assert batches(tracked(), checkpoint) == [[(1, "x")]]
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (2, 'y')")
    spark.sql(f"ALTER TABLE deltalog.`{path}` RENAME COLUMN a TO b")
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (3, 'z')")
    frame = tracked()
    assert frame.columns == ["id", "a"]
    with pytest.raises(SchemaMismatchError, match="start the stream again"):
        batches(frame, checkpoint)
    with pytest.raises(SchemaMismatchError, match="allowSourceColumnRename"):
        batches(tracked(), checkpoint)
    frame = tracked(allowSourceColumnRename="always")
    assert frame.columns == ["id", "b"]
    assert [rows for rows in batches(frame, checkpoint) if rows] == [[(3, "z")]]


def test_a_tracked_stream_of_a_named_table_continues_after_a_rename(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "cp"
    reader = spark.readStream.option("schemaTrackingLocation", str(checkpoint))
    try:
        spark.sql(
            "CREATE TABLE tracked (id INT, a STRING) USING deltalog TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        )
        spark.sql("INSERT INTO tracked VALUES (1, 'x')")
        assert batches(reader.table("tracked"), checkpoint) == [[(1, "x")]]
        spark.sql("ALTER TABLE tracked RENAME COLUMN a TO b")
        spark.sql("INSERT INTO tracked VALUES (2, 'y')")
        with pytest.raises(SchemaMismatchError, match="start the stream again"):
            batches(reader.table("tracked"), checkpoint)
        frame = reader.option("allowSourceColumnRename", "always").table("tracked")
        assert [rows for rows in batches(frame, checkpoint) if rows] == [[(2, "y")]]
    finally:
        spark.sql("DROP TABLE IF EXISTS tracked")
