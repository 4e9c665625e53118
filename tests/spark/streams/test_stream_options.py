"""Tables as sources of streams: triggers, options, and what is refused."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import deltalog
from deltalog.errors import (
    DeltaError,
    InvalidArgumentError,
    NotATableError,
    SchemaMismatchError,
    TableReplacedError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from tests.spark.streams.queries import (
    append,
    batches,
    failure,
    ids,
    running,
    start,
    stream,
)


@pytest.mark.parametrize("trigger", [{"once": True}, {"availableNow": True}], ids=str)
def test_a_trigger_that_ends_reads_what_was_there_at_its_beginning(
    spark: SparkSession, tmp_path: Path, path: str, trigger: dict[str, Any]
) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    seen = []

    def each(rows: DataFrame, number: int) -> None:
        seen.append(rows.count())
        append(spark, path, range(10 + number, 11 + number))

    start(stream(spark, path, maxFilesPerTrigger=2), tmp_path / "cp", each, **trigger).awaitTermination()
    assert seen == ([3] if "once" in trigger else [2, 1])


def test_limits_count_bytes(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    assert ids(batches(stream(spark, path, maxBytesPerTrigger="1b"), tmp_path / "a")) == [[0], [1], [2]]
    assert ids(batches(stream(spark, path, maxBytesPerTrigger="1 GB"), tmp_path / "b")) == [[0, 1, 2]]


def test_a_stream_starts_where_the_options_say(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    table = deltalog.DeltaTable(path)
    moments = {commit["version"]: commit["timestamp"] for commit in table.history()}
    later = datetime.fromtimestamp(moments[1] / 1000, timezone.utc).isoformat()
    first = min(version for version in moments if moments[version] >= moments[1])
    cases = [
        ({"startingVersion": 1}, 1),
        ({"startingTimestamp": later}, first),
        ({"startingVersion": "latest"}, 3),
    ]
    for number, (options, version) in enumerate(cases):
        found = ids(batches(stream(spark, path, **options), tmp_path / str(number)))
        assert [value for rows in found for value in rows] == list(range(version, 3)), options


def test_a_checkpoint_has_precedence_over_the_start(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2))
    assert ids(batches(stream(spark, path, startingVersion=1), tmp_path / "cp")) == [[1]]
    append(spark, path, range(2, 3))
    assert ids(batches(stream(spark, path, startingVersion=0), tmp_path / "cp")) == [[2]]


def test_commits_that_change_rows_mean_what_the_options_say(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(4), range(4, 8))
    spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id < 4")  # A whole file.
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


def test_rows_that_only_move_do_not_come_again(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[0, 1]]
    spark.sql(f"OPTIMIZE deltalog.`{path}`")
    append(spark, path, range(2, 3))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[2]]


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


WRONG: list[tuple[dict[str, Any], type[DeltaError], str]] = [
    ({"versionAsOf": 0}, InvalidArgumentError, "versionAsOf does not apply to a stream"),
    ({"timestampAsOf": "2026-01-01"}, InvalidArgumentError, "timestampAsOf does not apply to a stream"),
    ({"endingVersion": 3}, InvalidArgumentError, "endingVersion does not apply to a stream"),
    ({"maxFilePerTrigger": 3}, InvalidArgumentError, "did you mean maxFilesPerTrigger"),
    ({"withEventTimeOrder": "true"}, UnsupportedFeatureError, "withEventTimeOrder"),
    ({"schemaTrackingLocation": "/x"}, UnsupportedFeatureError, "schemaTrackingLocation"),
]


@pytest.mark.parametrize(("options", "kind", "text"), WRONG, ids=lambda value: str(value))
def test_an_option_that_is_not_for_streams_is_refused_by_load(
    spark: SparkSession, path: str, options: dict[str, Any], kind: type[DeltaError], text: str
) -> None:
    append(spark, path, range(1))
    with pytest.raises(kind, match=text) as refused:
        stream(spark, path, **options)
    assert path in str(refused.value)


WRONG_AT_START: list[tuple[dict[str, Any], type[DeltaError], str]] = [
    ({"startingVersion": 9}, VersionNotFoundError, "cannot start with version 9"),
    ({"startingVersion": "x"}, InvalidArgumentError, "startingVersion must be a version number"),
    (
        {"startingVersion": 0, "startingTimestamp": "2026-01-01"},
        InvalidArgumentError,
        "cannot be used together",
    ),
    ({"startingTimestamp": "2100-01-01"}, VersionNotFoundError, "after the newest version"),
    ({"maxFilesPerTrigger": 0}, InvalidArgumentError, "maxFilesPerTrigger must be a number of files"),
    ({"maxBytesPerTrigger": "-1"}, InvalidArgumentError, "maxBytesPerTrigger must be a size"),
    ({"ignoreDeletes": "yes"}, InvalidArgumentError, "ignoreDeletes must be true or false"),
    ({"excludeRegex": "(?=a)"}, InvalidArgumentError, "no regular expression"),
]


@pytest.mark.parametrize(("options", "kind", "text"), WRONG_AT_START, ids=lambda value: str(value))
def test_a_value_that_cannot_be_used_reaches_the_exception_of_the_query(
    spark: SparkSession, tmp_path: Path, path: str, options: dict[str, Any], kind: type[DeltaError], text: str
) -> None:
    append(spark, path, range(1))
    error, shown = failure(stream(spark, path, **options), tmp_path / "cp")
    assert isinstance(error, kind)
    assert text in str(error)
    assert text in shown


def test_an_offset_of_another_table_is_refused(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    batches(stream(spark, path), tmp_path / "cp")
    spark.range(3).write.format("deltalog").save(f"{path} 2")
    error, shown = failure(stream(spark, f"{path} 2"), tmp_path / "cp")
    assert isinstance(error, TableReplacedError)
    assert "begin with a new checkpoint" in shown


def test_a_checkpoint_of_another_source_is_refused(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    batches(spark.readStream.format("rate").load(), tmp_path / "cp", once=True)
    error, shown = failure(stream(spark, path), tmp_path / "cp")
    assert isinstance(error, InvalidArgumentError)
    assert "no offset of a stream" in shown


def test_what_is_no_table_is_refused_by_load(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotATableError):
        stream(spark, tmp_path / "nothing")


def test_a_schema_of_the_user_must_be_the_table_s(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    reader = spark.readStream.format("deltalog")
    assert ids(batches(reader.schema("id LONG").load(path), tmp_path / "cp")) == [[0]]
    with pytest.raises(InvalidArgumentError, match="does not match"):
        spark.readStream.format("deltalog").schema("id INT").load(path)


def test_a_restart_needs_nothing_of_a_batch_that_is_done(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    """Spark asks for the last batch again when a query is started, and throws it away."""
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


def test_a_gap_in_the_log_is_an_error_unless_loss_is_tolerated(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(1))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[0]]
    append(spark, path, range(1, 2), range(2, 3))
    deltalog.DeltaTable(path).create_checkpoint()
    for version in (0, 1):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()
    error, shown = failure(stream(spark, path), tmp_path / "cp")
    assert isinstance(error, VersionNotFoundError)
    assert "failOnDataLoss=false" in shown
    assert ids(batches(stream(spark, path, failOnDataLoss="false"), tmp_path / "cp")) == [[2]]


def test_two_streams_of_one_table_are_independent(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(2), range(2, 4))
    both = stream(spark, path, maxFilesPerTrigger=1).unionAll(stream(spark, path, startingVersion=1))
    found = batches(both, tmp_path / "cp")
    assert sorted(value for rows in ids(found) for value in rows) == [0, 1, 2, 2, 3, 3]
