"""Spark's tasks write the files of OPTIMIZE and REORG while other writers commit. The files have the same rows in the
same order as if the driver had written them.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from deltalog import (
    CommitConflictError,
    DeltaTable,
    InvalidArgumentError,
    MissingFileError,
    convert_to_delta,
)
from deltalog._internal import SparkOptimize, delete_rows, optimize
from deltalog.commit import commit_arguments
from deltalog.spark import tables
from deltalog.spark.sql import division, executors
from deltalog.spark.write import job

VECTORS = "'delta.enableDeletionVectors' = 'true'"
TRACKING = "'delta.enableRowTracking' = 'true'"
COLUMNS = "a INT, p STRING, q TIMESTAMP, c CHAR(5), s STRUCT<x: INT, y: ARRAY<MAP<STRING, DATE>>>"
# Partition values: NULL, and values that are escaped in the names of directories.
ROWS = (
    "id, CASE WHEN id % 3 = 0 THEN NULL WHEN id % 3 = 1 THEN 'a/b=c %é' ELSE 'z' END, "
    "TIMESTAMP '2024-02-29 01:02:03.000004', 'q', named_struct('x', id, 'y', array(map('k', DATE '1066-10-14'), null))"
)


@pytest.fixture(autouse=True)
def by_executors(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(division.MIN_SIZE, "0")
    yield
    spark.conf.unset(division.MIN_SIZE)


def create(spark: SparkSession, path: str, properties: str, partitions: str = "p, q") -> str:
    """Creates a table with four small files in each of three partitions, and returns its name."""
    table = f"deltalog.`{path}`"
    by = f"PARTITIONED BY ({partitions})" if partitions else ""
    of = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING deltalog {by} {of}")
    for first in range(0, 120, 30):
        frame = spark.sql(f"SELECT {ROWS} FROM range({first}, {first + 30}, 1, 1)")
        frame.toDF("a", "p", "q", "c", "s").write.format("deltalog").mode("append").save(path)
    return table


def files(path: str) -> list[str]:
    return [unquote(uri.removeprefix("file://")) for uri in DeltaTable(path).file_uris()]


def names(path: str) -> set[str]:
    """Returns the names of all data files."""
    return {
        str(file.relative_to(path)) for file in Path(path).rglob("*.parquet") if "_delta_log" not in str(file)
    }


def is_by_executors(path: str) -> bool:
    """Returns whether Spark's tasks have written the files of the last commit, judging by the files' names."""
    added = of_kind(last_commit(path), "add")
    return bool(added) and all(add["path"].endswith("-c000.snappy.parquet") for add in added)


def contents(path: str) -> list[list[Any]]:
    """Returns the rows of each file in order, without the ids, which differ between the two tables."""
    return sorted((pq.ParquetFile(file).read().to_pylist() for file in files(path)), key=str)


def rows(spark: SparkSession, table: str, columns: str = "*") -> list[str]:
    return sorted(map(str, spark.sql(f"SELECT {columns} FROM {table}").collect()))


def last_commit(path: str) -> list[dict[str, Any]]:
    version = DeltaTable(path).version()
    text = Path(path, f"_delta_log/{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def of_kind(actions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]


@pytest.mark.parametrize(
    ("properties", "partitions"),
    [
        ("", "p, q"),
        ("", ""),
        pytest.param(VECTORS, "p, q", marks=pytest.mark.thorough),
        pytest.param(f"{VECTORS}, {TRACKING}", "p, q", marks=pytest.mark.thorough),
        pytest.param(f"{VECTORS}, 'delta.columnMapping.mode' = 'name'", "p, q", marks=pytest.mark.thorough),
        (f"{VECTORS}, {TRACKING}, 'delta.columnMapping.mode' = 'id'", "p"),
        ("'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name'", "p, q"),
    ],
)
def test_the_files_equal_the_drivers(
    spark: SparkSession, tmp_path: Path, properties: str, partitions: str
) -> None:
    """Each new file has the same rows in the same order as the file that the driver would write."""
    path, other = str(tmp_path / "by spark"), str(tmp_path / "by the core")
    table = create(spark, path, properties, partitions)
    if VECTORS in properties:
        spark.sql(f"DELETE FROM {table} WHERE a % 7 = 3 OR a BETWEEN 30 AND 59 AND p = 'z'")
    else:
        spark.sql(f"DELETE FROM {table} WHERE a % 7 = 3")
    shutil.copytree(path, other)
    columns = "*, _metadata.row_id, _metadata.row_commit_version" if TRACKING in properties else "*"
    before = rows(spark, table, columns)
    [done] = spark.sql(f"OPTIMIZE {table}").collect()
    metrics, version = optimize(
        DeltaTable(other)._snapshot, None, None, None, False, False, commit_arguments(None, None)
    )
    assert version == DeltaTable(path).version()
    for name in (
        "numFilesAdded",
        "numFilesRemoved",
        "numBins",
        "totalConsideredFiles",
        "partitionsOptimized",
    ):
        assert done.metrics[name] == metrics[name], name
    assert is_by_executors(path)
    assert not is_by_executors(other)
    assert rows(spark, table, columns) == before
    assert contents(path) == contents(other)
    by_spark, by_core = (of_kind(last_commit(place), "add") for place in (path, other))
    for action in ("partitionValues", "baseRowId", "dataChange"):
        assert sorted(str(add.get(action)) for add in by_spark) == sorted(
            str(add.get(action)) for add in by_core
        )
    assert DeltaTable(path).verify().ok
    # A second OPTIMIZE has nothing to do.
    assert spark.sql(f"OPTIMIZE {table}").collect()[0].metrics.numFilesAdded == 0


@pytest.mark.every_spark
def test_reorg_and_verbs_are_carried_out_by_the_executors(spark: SparkSession, path: str) -> None:
    table = create(spark, path, f"{VECTORS}, 'delta.columnMapping.mode' = 'name'")
    spark.sql(f"OPTIMIZE {table}")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN c")
    spark.sql(f"DELETE FROM {table} WHERE a = 4")
    before = rows(spark, table)
    [done] = spark.sql(f"REORG TABLE {table} WHERE p IS NULL OR p <> 'z' APPLY (PURGE)").collect()
    assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (2, 2)
    assert done.metrics.deletionVectorStats.numDeletionVectorsRemoved == 1
    assert of_kind(last_commit(path), "commitInfo")[0]["operation"] == "REORG"
    [other] = spark.sql(f"REORG TABLE {table} APPLY (PURGE)").collect()
    assert other.metrics.numFilesAdded == 1
    assert is_by_executors(path)
    assert rows(spark, table) == before
    assert {len(pq.ParquetFile(file).schema_arrow) for file in files(path)} == {2}
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE a < 10")
    [verb] = tables.DeltaTable.forPath(spark, path).optimize().where("p = 'z'").executeCompaction().collect()
    assert (verb.metrics.numFilesAdded, verb.metrics.numFilesRemoved) == (1, 2)
    assert is_by_executors(path)


@pytest.mark.newest
def test_moved_rows_are_not_checked_or_computed_again(spark: SparkSession, path: str) -> None:
    """Rows that are only moved are not treated as new rows: constraints are not checked, and generated and identity
    columns keep their values.
    """
    table = f"deltalog.`{path}`"
    spark.sql(f"CREATE TABLE {table} (a INT, v INT) USING deltalog")
    columns = ", ".join(f"c{number} INT DEFAULT 7" for number in range(70))
    identity = "i BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 3)"
    wide = f"deltalog.`{path} wide`"
    spark.sql(
        f"CREATE TABLE {wide} (a INT, b INT GENERATED ALWAYS AS (a + 1), {identity}, {columns}) USING deltalog "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    for number in range(3):
        spark.sql(f"INSERT INTO {wide} (a) VALUES ({number}), ({number + 10})")
    before, metadata = rows(spark, wide), DeltaTable(f"{path} wide").schema().to_json()
    assert spark.sql(f"OPTIMIZE {wide}").collect()[0].metrics.numFilesAdded == 1
    assert rows(spark, wide) == before
    assert DeltaTable(f"{path} wide").schema().to_json() == metadata
    assert {*last_commit(f"{path} wide")[0], *last_commit(f"{path} wide")[-1]} == {"commitInfo", "add"}


def test_widened_columns_and_files_of_other_schemas(spark: SparkSession, path: str) -> None:
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (a SMALLINT, d DECIMAL(5, 2)) USING deltalog "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 1.25), (NULL, NULL)")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN a TYPE BIGINT")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN d TYPE DECIMAL(12, 4)")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (n STRING)")
    spark.sql(f"INSERT INTO {table} VALUES (5000000000, 12345678.0625, 'new')")
    before = rows(spark, table)
    assert spark.sql(f"OPTIMIZE {table}").collect()[0].metrics.numFilesAdded == 1
    assert is_by_executors(path)
    assert rows(spark, table) == before


@pytest.mark.newest
def test_special_types_and_files_in_other_directories(spark: SparkSession, path: str) -> None:
    """The table has variants, collations and timestamps without time zone, and it is a shallow clone, whose files are
    in another directory.
    """
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (v VARIANT, s STRING COLLATE UTF8_LCASE, n TIMESTAMP_NTZ, b BINARY, f FLOAT, "
        "c VARCHAR(3)) USING deltalog"
    )
    for number in range(3):
        spark.sql(
            f"""INSERT INTO {table} SELECT parse_json('{{"a": [{number}, null, "x"]}}'), 'É{number}',
            TIMESTAMP_NTZ '1582-10-04 01:02:03', X'00FF', FLOAT('NaN'), 'abc'"""
        )
    columns = "to_json(v), s, n, hex(b), f, c"
    before = rows(spark, table, columns)
    spark.sql(f"CREATE TABLE shallow SHALLOW CLONE {table} LOCATION '{path} clone'")
    try:
        assert spark.sql("OPTIMIZE shallow").collect()[0].metrics.numFilesRemoved == 3
        assert is_by_executors(f"{path} clone")
        assert rows(spark, "shallow", columns) == before
    finally:
        spark.sql("DROP TABLE shallow")
    spark.sql(f"CALL deltalog.optimize('{path}')")
    assert is_by_executors(path)
    assert rows(spark, table, columns) == before


def meanwhile(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Runs `work` after the job of an OPTIMIZE and before its commit."""
    run_job = job.run_job

    def run(*arguments: Any) -> Any:
        done = run_job(*arguments)
        work()
        return done

    monkeypatch.setattr(executors, "run_job", run)


def delete(path: str, condition: str, version: int | None = None) -> Any:
    return delete_rows(DeltaTable(path, version=version)._snapshot, condition, commit_arguments(None, None))


@pytest.mark.every_spark
def test_concurrent_deletes_are_applied_to_the_new_files(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, path, f"{VECTORS}, {TRACKING}")
    spark.sql(f"DELETE FROM {table} WHERE a % 5 = 0")
    columns = "a, _metadata.row_id"
    before = rows(spark, table, columns)
    meanwhile(monkeypatch, lambda: delete(path, "a = 1 or a = 34 or a = 61 or a = 118"))
    [done] = spark.sql(f"OPTIMIZE {table}").collect()
    assert (done.metrics.numFilesAdded, done.metrics.numRowsCarriedOver) == (3, 4)
    gone = [f"Row(a={a}, " for a in (1, 34, 61, 118)]
    assert rows(spark, table, columns) == [row for row in before if not row.startswith(tuple(gone))]


@pytest.mark.newest
def test_a_bin_whose_rows_were_removed_is_not_committed(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, path, "")
    old = names(path)
    meanwhile(monkeypatch, lambda: delete(path, "p = 'z'"))
    [done] = spark.sql(f"OPTIMIZE {table}").collect()
    assert (done.metrics.numFilesAdded, done.metrics.numBinsGivenUp) == (2, 1)
    assert sorted(row.a for row in spark.sql(f"SELECT a FROM {table}").collect()) == [
        a for a in range(120) if a % 3 < 2
    ]
    assert len(names(path) - old) == 2


@pytest.mark.newest
def test_statements_that_are_overtaken_follow_the_rows_or_conflict(spark: SparkSession, path: str) -> None:
    table = create(spark, path, VECTORS)
    spark.sql(f"DELETE FROM {table} WHERE a = 2")
    version = DeltaTable(path).version()
    spark.sql(f"OPTIMIZE {table}")
    delete(path, "a = 3 or a = 31 or a = 119", version)
    assert sorted(row.a for row in spark.sql(f"SELECT a FROM {table}").collect()) == [
        a for a in range(120) if a not in (2, 3, 31, 119)
    ]
    # Without deletion vectors, statements rewrite files.
    other = f"{path} without vectors"
    create(spark, other, "")
    version = DeltaTable(other).version()
    spark.sql(f"OPTIMIZE deltalog.`{other}`")
    with pytest.raises(CommitConflictError):
        delete(other, "a = 3", version)


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, path: str) -> None:
    """A job that fails leaves no files behind. It has one task, because a second task that ends just as the job fails
    may leave a file that no version refers to.
    """
    table = create(spark, path, "")
    victim = Path(next(file for file in files(path) if "p=z" in file))
    victim.rename(victim.with_suffix(".away"))
    version, before = DeltaTable(path).version(), names(path)
    with pytest.raises(MissingFileError, match="the file is not there"):
        spark.sql(f"OPTIMIZE {table} WHERE p = 'z'").collect()
    assert (DeltaTable(path).version(), names(path)) == (version, before)
    # If a file is missing, the job must fail instead of ignoring its rows.
    for setting in ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"):
        spark.conf.set(setting, "true")
    try:
        with pytest.raises(MissingFileError):
            tables.DeltaTable.forPath(spark, path).optimize().where("p = 'z'").executeCompaction()
    finally:
        for setting in ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"):
            spark.conf.unset(setting)
    assert (DeltaTable(path).version(), names(path)) == (version, before)
    with pytest.raises(MissingFileError):
        spark.sql(f"OPTIMIZE {table}").collect()
    assert DeltaTable(path).version() == version
    victim.with_suffix(".away").rename(victim)
    assert spark.sql(f"OPTIMIZE {table}").collect()[0].metrics.numFilesAdded == 3
    assert sorted(row.a for row in spark.sql(f"SELECT a FROM {table}").collect()) == [*range(120)]


@pytest.mark.parametrize(
    "settings",
    [
        {
            "spark.sql.files.maxRecordsPerFile": "3",
            "spark.sql.files.maxPartitionBytes": "100",
            "spark.sql.files.openCostInBytes": "1",
            "spark.sql.files.maxPartitionNum": "2",
            "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
            "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
            "spark.sql.maxConcurrentOutputFileWriters": "2",
        },
        {"spark.sql.parquet.enableVectorizedReader": "false", "spark.sql.codegen.wholeStage": "false"},
        {
            "spark.sql.codegen.maxFields": "2",
            "spark.sql.caseSensitive": "true",
            "spark.sql.ansi.enabled": "false",
        },
    ],
)
def test_the_session_does_not_change_what_is_moved(
    spark: SparkSession, path: str, settings: dict[str, str]
) -> None:
    """Session settings do not change which rows are moved or how: the maximum number of rows per file, how files are
    split and read, and the calendar of old dates.
    """
    table = create(spark, path, f"{VECTORS}, {TRACKING}")
    spark.sql(f"DELETE FROM {table} WHERE a % 9 = 4")
    columns = "*, _metadata.row_id"
    before = rows(spark, table, columns)
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        assert spark.sql(f"OPTIMIZE {table}").collect()[0].metrics.numFilesAdded == 3
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert is_by_executors(path)
    assert rows(spark, table, columns) == before


@pytest.mark.newest
def test_times_and_texts_of_other_writers_are_moved_as_they_are(spark: SparkSession, path: str) -> None:
    """INT96 timestamps and strings of other writers are moved unchanged, even if Spark is configured to shift such
    timestamps and to match column names case-sensitively.
    """
    Path(path).mkdir()
    for number in range(2):
        at = datetime(2026, 1, number + 1, 12)
        rows = pa.table({"A": pa.array([number], pa.int32()), "at": pa.array([at], pa.timestamp("ns"))})
        pq.write_table(rows, f"{path}/{number}.parquet", use_deprecated_int96_timestamps=True)
    before = pa.table(convert_to_delta(path).to_arrow()).sort_by("A")
    settings = {"spark.sql.parquet.int96TimestampConversion": "true", "spark.sql.caseSensitive": "true"}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        assert spark.sql(f"OPTIMIZE deltalog.`{path}`").collect()[0].metrics.numFilesAdded == 1
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert is_by_executors(path)
    assert pa.table(DeltaTable(path).to_arrow()).sort_by("A").equals(before)


@pytest.mark.newest
def test_who_writes(spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture) -> None:
    """The driver writes the files of small tables. In a local session it writes the files of all tables, unless a size
    is set.
    """
    table = create(spark, path, "")
    caplog.set_level("INFO", "deltalog.spark")

    def reason() -> str:
        caplog.clear()
        spark.sql(f"OPTIMIZE {table}").collect()
        found = [record.getMessage() for record in caplog.records if "carries out" in record.getMessage()]
        return found[0].partition("OPTIMIZE: ")[2] if found else "executors"

    spark.conf.set(division.MIN_SIZE, "many")
    with pytest.raises(InvalidArgumentError, match="must be a size such as 256m, not 'many'"):
        reason()
    spark.conf.set(division.MIN_SIZE, "1m")
    before = DeltaTable(path).version()
    assert "and less than 1048576" in reason()
    assert not is_by_executors(path)
    assert reason() == "there is nothing to do"
    delete(path, "a < 60")
    tables.DeltaTable.forPath(spark, path).restoreToVersion(before)
    spark.conf.unset(division.MIN_SIZE)
    assert reason() == "the tasks of a local session run in the driver"
    tables.DeltaTable.forPath(spark, path).restoreToVersion(before)
    spark.conf.set(division.MIN_SIZE, "1k")
    assert reason() == "executors"
    assert is_by_executors(path)
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE p = 'z'")
    assert reason() == "the files become one file"


@pytest.mark.newest
def test_an_optimize_ends_once(spark: SparkSession, path: str) -> None:
    create(spark, path, "")
    plan = SparkOptimize.begin(DeltaTable(path)._snapshot, "p = 'z'", False, commit_arguments(None, None))
    assert (plan.batches, plan.bins, plan.tasks, plan.files(0).kept, plan.ordering) == (1, 1, 1, 4, None)
    [(count, new, is_ordered, in_log, directory, values)] = plan.outputs(0)
    assert (new, is_ordered, in_log) == (1, False, 40)
    assert (count, directory, values[0]) == (4, "p=z/q=2024-02-29T06%3A02%3A03.000004Z/", "z")
    metrics, version = plan.finish()
    assert (metrics["numFilesAdded"], version) == (0, None)
    with pytest.raises(InvalidArgumentError, match="has ended"):
        plan.execute()
