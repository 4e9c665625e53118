"""Streams fail cleanly if an option, a checkpoint, the log or a file is wrong.

The query fails with a deltalog error that says what to do, and `exception()` contains its text. No batch is
half-written, and no row is silently left out.
"""

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog
from deltalog.errors import (
    DeltaError,
    InvalidArgumentError,
    MissingFileError,
    NotATableError,
    TableReplacedError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltalog.spark.options import Options
from deltalog.spark.streams import source_options
from tests.spark.streams.batches import ended, write, written
from tests.spark.streams.queries import append, batches, failure, ids, running, start, stream


def clean_up(path: str, version: int) -> None:
    """Writes a checkpoint, and deletes the commits before a version."""
    deltalog.DeltaTable(path).create_checkpoint()
    for number in range(version):
        (Path(path) / "_delta_log" / f"{number:020}.json").unlink()


WRONG: list[tuple[dict[str, Any], type[DeltaError], str]] = [
    ({"versionAsOf": 0}, InvalidArgumentError, "versionAsOf does not apply to a stream"),
    ({"timestampAsOf": "2026-01-01"}, InvalidArgumentError, "timestampAsOf does not apply to a stream"),
    ({"endingVersion": 3}, InvalidArgumentError, "endingVersion does not apply to a stream"),
    ({"maxFilePerTrigger": 3}, InvalidArgumentError, "did you mean maxFilesPerTrigger"),
    (
        {"schemaTrackingLocation": "/schemas", "failOnDataLoss": "false"},
        InvalidArgumentError,
        "leave out failOnDataLoss",
    ),
    ({"withEventTimeOrder": "true"}, UnsupportedFeatureError, "withEventTimeOrder"),
    ({"purpose": "x"}, InvalidArgumentError, "the option purpose is not known for streams"),
]


@pytest.mark.parametrize(("options", "kind", "text"), WRONG, ids=lambda value: str(value))
def test_load_refuses_options_that_do_not_apply_to_streams(
    spark: SparkSession, path: str, options: dict[str, Any], kind: type[DeltaError], text: str
) -> None:
    append(spark, path, range(1))
    with pytest.raises(kind, match=text) as refused:
        stream(spark, path, **options)
    assert path in str(refused.value)


WRONG_AT_START: list[tuple[dict[str, Any], type[DeltaError], str]] = [
    ({"startingVersion": 9}, VersionNotFoundError, "cannot start with version 9"),
    ({"startingVersion": -1}, InvalidArgumentError, "startingVersion must be a version number"),
    ({"startingVersion": "x"}, InvalidArgumentError, "startingVersion must be a version number"),
    (
        {"startingVersion": 0, "startingTimestamp": "2026-01-01"},
        InvalidArgumentError,
        "cannot be used together",
    ),
    ({"startingTimestamp": "2100-01-01"}, VersionNotFoundError, "after the newest version"),
    ({"maxFilesPerTrigger": 0}, InvalidArgumentError, "maxFilesPerTrigger must be a number of files"),
    ({"maxBytesPerTrigger": "-1"}, InvalidArgumentError, "maxBytesPerTrigger must be a size"),
    (
        {"maxFilesPerTrigger": "9" * 5000},
        InvalidArgumentError,
        "maxFilesPerTrigger must be a number of files",
    ),
    ({"maxBytesPerTrigger": "8192p"}, InvalidArgumentError, "maxBytesPerTrigger must be a size"),
    ({"startingVersion": 2**63}, InvalidArgumentError, "startingVersion must be a version number"),
    ({"ignoreDeletes": "yes"}, InvalidArgumentError, "ignoreDeletes must be true or false"),
    ({"excludeRegex": "(?=a)"}, InvalidArgumentError, "not a valid regular expression"),
]


@pytest.mark.parametrize(("options", "kind", "text"), WRONG_AT_START, ids=lambda value: str(value))
def test_an_error_about_a_wrong_value_is_the_exception_of_the_query(
    spark: SparkSession, tmp_path: Path, path: str, options: dict[str, Any], kind: type[DeltaError], text: str
) -> None:
    append(spark, path, range(1))
    error, shown = failure(stream(spark, path, **options), tmp_path / "cp")
    assert isinstance(error, kind)
    for said in (str(error), shown):
        assert text in said
        assert "a table" in said or "a%20table" in said


def test_an_offset_of_another_table_is_refused(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    batches(stream(spark, path), tmp_path / "cp")
    spark.range(3).write.format("deltalog").save(f"{path} 2")
    error, shown = failure(stream(spark, f"{path} 2"), tmp_path / "cp")
    assert isinstance(error, TableReplacedError)
    assert "begin with a new checkpoint" in shown


def test_a_checkpoint_of_another_source_is_refused(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    spark.range(1).write.parquet(str(tmp_path / "files"))
    files = spark.readStream.schema("id LONG").parquet(str(tmp_path / "files"))
    assert ids(batches(files, tmp_path / "cp")) == [[0]]
    error, shown = failure(stream(spark, path), tmp_path / "cp")
    assert isinstance(error, InvalidArgumentError)
    for text in ("not an offset of a stream", "a checkpoint that no other source has used"):
        assert text in shown


def test_an_offset_of_an_unknown_version_is_refused(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[0]]
    offset = tmp_path / "cp" / "offsets" / "0"
    offset.write_text(offset.read_text().replace('"sourceVersion":1', '"sourceVersion":2'))
    offset.with_name(".0.crc").unlink()
    error, shown = failure(stream(spark, path), tmp_path / "cp")
    assert isinstance(error, UnsupportedFeatureError)
    assert "the offset has the unknown version 2" in shown
    assert "begin with a new checkpoint" in shown


def test_a_start_that_was_cleaned_up_is_refused(spark: SparkSession, tmp_path: Path, path: str) -> None:
    append(spark, path, range(1), range(1, 2), range(2, 3))
    clean_up(path, 2)
    error, shown = failure(stream(spark, path, startingVersion=0), tmp_path / "cp")
    assert isinstance(error, VersionNotFoundError)
    assert error.version == 0
    assert "leave out the start to begin with all rows" in shown


def test_load_refuses_a_path_without_a_table(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotATableError):
        stream(spark, tmp_path / "nothing")


def test_a_gap_in_the_log_is_an_error_unless_loss_is_tolerated(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(1))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[0]]
    append(spark, path, range(1, 2), range(2, 3))
    clean_up(path, 2)
    error, shown = failure(stream(spark, path), tmp_path / "cp")
    assert isinstance(error, VersionNotFoundError)
    assert "failOnDataLoss=false" in shown
    assert ids(batches(stream(spark, path, failOnDataLoss="false"), tmp_path / "cp")) == [[2]]


@pytest.mark.parametrize("version", [2, 3])
def test_a_commit_that_is_missing_ends_the_stream_before_it(
    spark: SparkSession, tmp_path: Path, path: str, version: int
) -> None:
    append(spark, path, range(1))
    assert ids(batches(stream(spark, path), tmp_path / "cp")) == [[0]]
    append(spark, path, range(1, 2), range(2, 3), range(3, 4))
    deltalog.DeltaTable(path).create_checkpoint()
    (Path(path) / "_delta_log" / f"{version:020}.json").unlink()
    error, shown = failure(stream(spark, path), tmp_path / "cp")
    assert isinstance(error, VersionNotFoundError)
    assert error.version == version
    assert "failOnDataLoss=false" in shown


def test_a_vacuumed_file_ends_the_stream_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(1), range(1, 2))
    spark.sql(f"OPTIMIZE deltalog.`{path}`")
    table = deltalog.DeltaTable(path)
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    target = tmp_path / "target"
    query = write(stream(spark, path, startingVersion=0), tmp_path / "cp").start(str(target))
    with pytest.raises(MissingFileError, match=r"vacuumed or deleted before the stream .* new checkpoint"):
        ended(query)
    assert "vacuumed or deleted before the stream read it" in str(query.exception())
    assert not list(tmp_path.glob("target/**/*.parquet"))
    assert not (target / "_delta_log").exists()


def test_a_stream_begins_with_the_next_commit_of_its_first_run(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    """A stream that starts with the next commit still starts with this commit if its first run stopped early: before
    the commit was made, or during its batch.
    """

    def latest(**options: Any) -> DataFrame:
        return stream(spark, path, startingVersion="latest", **options)

    def die(rows: DataFrame, number: int) -> None:
        raise ValueError("dies")

    append(spark, path, range(1))
    assert batches(latest(), tmp_path / "cp") == []
    append(spark, path, range(1, 2), range(2, 3))
    query = start(latest(maxFilesPerTrigger=1), tmp_path / "cp", die, availableNow=True)
    with pytest.raises(Exception, match="dies"):
        query.awaitTermination()
    append(spark, path, range(3, 4))
    assert ids(batches(latest(), tmp_path / "cp")) == [[1], [2, 3]]
    append(spark, path, range(4, 5))
    assert ids(batches(latest(), tmp_path / "cp")) == [[4]]
    assert ids(batches(latest(), tmp_path / "another")) == []


def test_the_start_is_determined_again_only_if_the_options_change(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(1))
    assert batches(stream(spark, path, startingVersion="latest"), tmp_path / "cp") == []
    append(spark, path, range(1, 2))
    by_time = stream(spark, path, startingTimestamp="2020-01-01")
    assert ids(batches(by_time, tmp_path / "cp")) == [[0, 1]]


def test_a_stored_start_does_not_apply_to_a_replaced_table(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    append(spark, path, range(1))
    assert batches(stream(spark, path, startingVersion="latest"), tmp_path / "cp") == []
    append(spark, f"{path} 2", range(1), range(1, 2))
    error, shown = failure(stream(spark, f"{path} 2", startingVersion="latest"), tmp_path / "cp")
    assert isinstance(error, TableReplacedError)
    assert "begin with a new checkpoint" in shown


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"tableId": "1", "version": -1}'])
def test_a_stored_start_that_is_damaged_is_an_error(
    spark: SparkSession, tmp_path: Path, path: str, text: str
) -> None:
    append(spark, path, range(1))
    assert batches(stream(spark, path, startingVersion="latest"), tmp_path / "cp") == []
    source = tmp_path / "cp" / "sources" / "0"
    (source / ".deltalog-start.json.crc").unlink()
    (source / "deltalog-start.json").write_text(text)
    error, shown = failure(stream(spark, path, startingVersion="latest"), tmp_path / "cp")
    assert isinstance(error, InvalidArgumentError)
    assert "begin with a new checkpoint" in shown


def test_plans_and_progress_of_a_stream_contain_no_secrets(
    spark: SparkSession, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(spark, path, range(1))
    names = ("aws_secret_access_key", "aws_access_key_id", "azure_storage_account_key", "fs.s3a.secret.key")
    secrets = dict.fromkeys(names, "canary")
    frames = [
        stream(spark, path, **secrets),
        spark.readStream.options(**secrets).table(f"deltalog.`{path}`"),
        stream(spark, path, **secrets).where("id > 3").union(stream(spark, path, **secrets)),
    ]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for frame in frames:
            frame.explain(True)
    assert shown.getvalue().count("StreamingRelation") > 6
    used, checked = [], source_options.arguments_of

    def arguments_of(options: Options, bound: Any) -> Any:
        used.append({name: options.values[name] for name in names})
        return checked(options, bound)

    monkeypatch.setattr(source_options, "arguments_of", arguments_of)
    query = write(frames[2], tmp_path / "cp").options(**secrets).start(str(tmp_path / "target"))
    with running(query):
        ended(query)
    assert used == [secrets, secrets]
    texts = [shown.getvalue(), query._jsq.explainInternal(True), str(query.recentProgress)]
    files = [file.read_text(errors="replace") for file in (tmp_path / "cp").rglob("*") if file.is_file()]
    assert all("canary" not in text for text in (*texts, *files))
    assert written(tmp_path / "target") == [(0,)]
