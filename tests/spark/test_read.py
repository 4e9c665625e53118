"""Tables are read by path, by name and at a version. Columns, types and filters behave as with Spark's Parquet
source.
"""

import datetime
import decimal
import gc
import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import deltalog
import deltalog.spark
from deltalog import (
    InvalidArgumentError,
    MissingFileError,
    NotATableError,
    TableReplacedError,
    VersionNotFoundError,
)
from deltalog.spark.read import planner


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.fixture
def table(path: str) -> str:
    """Creates a table with two commits, without Spark. Its partition column is in the middle of the schema."""
    first = pa.table({"a": pa.array([1, 2], pa.int32()), "p": ["x", "y"], "v": [1.5, 2.5]})
    write_deltalake(path, first, partition_by=["p"])
    write_deltalake(
        path,
        pa.table({"a": pa.array([3], pa.int32()), "p": pa.array([None], pa.string()), "v": [3.5]}),
        mode="append",
    )
    return path


def test_every_entry_point_returns_columns_in_the_tables_order(spark: SparkSession, table: str) -> None:
    frames = [
        spark.read.format("deltalog").load(table),
        spark.table(f"deltalog.`{table}`"),
        spark.sql(f"SELECT * FROM deltalog.`{table}`"),
        deltalog.spark.DeltaTable.forPath(spark, table).toDF(),
    ]
    for frame in frames:
        assert frame.columns == ["a", "p", "v"]
        assert rows(frame) == [(1, "x", 1.5), (2, "y", 2.5), (3, None, 3.5)]


def test_the_scan_is_sparks_own_parquet_scan(
    spark: SparkSession, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.table(f"deltalog.`{table}`").where("p = 'x' AND a < 10").select("v")
    assert rows(frame) == [(1.5,)]
    frame.explain()
    plan = capsys.readouterr().out
    assert "FileScan parquet" in plan
    assert "ReadSchema: struct<a:int,v:double>" in plan
    assert "PushedFilters: [IsNotNull(a), LessThan(a,10)]" in plan
    assert "[v1, 1 of 3 files, file:/" in plan
    assert "Python" not in plan


def test_partitions_are_pruned_and_pruning_is_logged(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    frame = spark.table(f"deltalog.`{table}`").where("p = 'x'")
    with caplog.at_level(logging.INFO, logger="deltalog.spark"):
        frame.collect()
    assert any("v1: 1 of 3 files" in message for message in caplog.messages)
    metric = frame._jdf.queryExecution().executedPlan().collectLeaves().head().metrics().apply("numFiles")
    assert metric.value() == 1


def test_the_plan_shows_how_many_files_are_read(
    spark: SparkSession, table: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The plan of each scan shows its number of files, before and after it runs. Creating the text does not list the
    files again.
    """
    write_deltalake(
        table, pa.table({"a": pa.array([4], pa.int32()), "p": ["x"], "v": [4.5]}), mode="overwrite"
    )
    write_deltalake(table, pa.table({"a": pa.array([5], pa.int32()), "p": ["y"], "v": [5.5]}), mode="append")
    frame = spark.read.format("deltalog").load(table)
    both = frame.where("p = 'x'").union(frame).union(frame.where("reverse(p) = 'z' AND a < 3"))
    wanted = ["[v3, 1 of 2 files, file:/", "[v3, 2 of 2 files, file:/", "[v3, 0 of 2 files, file:/"]

    def texts(mode: str) -> list[str]:
        both.explain(mode)
        return re.findall(r"\[v3, [^:]*:/", capsys.readouterr().out)

    with caplog.at_level(logging.INFO, logger="deltalog.spark"):
        assert texts("simple") == texts("formatted") == wanted
        assert both.count() == 3
        assert texts("simple") == texts("formatted") == wanted
    assert len([message for message in caplog.messages if "v3:" in message]) == 3
    right = frame.where("p = 'y'").select("v").hint("broadcast")
    adaptive = frame.where("p = 'x'").select("a").join(right, sf.col("v") > sf.col("a"), "left")
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="deltalog.spark"):
        assert len(adaptive.collect()) == 1
    assert [message.partition("v3: ")[2][:6] for message in caplog.messages] == ["1 of 2", "1 of 2"]


@pytest.mark.parametrize(
    "condition",
    [
        "p LIKE '%y'",
        "reverse(p) = 'x'",
        "p RLIKE '^[xy]$' AND a > 1",
        "hash(p) % 2 = 0",
        "p <=> NULL",
        "coalesce(p, 'x') = 'x'",
        "CAST(a AS STRING) > p",
    ],
)
def test_filters_on_partition_columns_are_exact(spark: SparkSession, table: str, condition: str) -> None:
    """Filters on partition columns are applied exactly, even if deltalog's planner does not support them. Spark leaves
    such filters to the file index alone.
    """
    frame = spark.read.format("deltalog").load(table)
    plain = spark.createDataFrame(frame.collect(), frame.schema)
    assert rows(frame.where(condition)) == rows(plain.where(condition))


def test_partition_filters_from_joins_and_subqueries_are_applied(spark: SparkSession, table: str) -> None:
    """Partition filters that are known only at run time are applied. Here they come from dynamic partition pruning and
    from a scalar subquery.
    """
    frame = spark.table(f"deltalog.`{table}`")
    keys = spark.createDataFrame([("y",)], "p string").hint("broadcast")
    assert rows(frame.join(keys, "p").select("a")) == [(2,)]
    assert rows(
        spark.sql(f"SELECT a FROM deltalog.`{table}` WHERE p = (SELECT max(p) FROM deltalog.`{table}`)")
    ) == [(2,)]


def test_a_path_may_be_followed_by_a_version_or_a_time(spark: SparkSession, table: str) -> None:
    """A path may be followed by a version or a time, as in the JVM connector. If a table's own path ends like this,
    the path means that table.
    """
    load = spark.read.format("deltalog").load
    history = deltalog.DeltaTable(table).history()
    zone = ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone")))
    first = datetime.datetime.fromtimestamp(history[1]["timestamp"] / 1000, zone)
    moment = f"{first:%Y%m%d%H%M%S}{first.microsecond // 1000:03}"
    for end in ("@v0", "@V0", f"@{moment}"):
        assert load(f"{table}{end}").count() == 2
        assert spark.table(f"deltalog.`{table}{end}`").count() == 2
    assert spark.sql(
        f"SELECT n.a FROM deltalog.`{table}@v1` n ANTI JOIN deltalog.`{table}@v0` o USING (a)"
    ).collect()
    with pytest.raises(VersionNotFoundError, match="versions are 0 to 1"):
        load(f"{table}@v2")
    for option, value in (
        ("versionAsOf", "0"),
        ("timestampAsOf", "2100-01-01"),
        ("TIMESTAMPASOFMICROS", "0"),
    ):
        with pytest.raises(InvalidArgumentError, match="already names a version: leave out"):
            spark.read.format("deltalog").option(option, value).load(f"{table}@v1")
    with pytest.raises(InvalidArgumentError, match="an older version of a table cannot be written"):
        spark.sql(f"TRUNCATE TABLE deltalog.`{table}@v0`")
    for statement in (
        "DELETE FROM {}",
        "UPDATE {} SET v = 0",
        "MERGE INTO {} t USING range(1) s ON t.a = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO {} SELECT 1, 'x', 1",
        "INSERT OVERWRITE {} SELECT 1, 'x', 1",
        "INSERT INTO {} REPLACE WHERE a = 1 SELECT 1, 'x', 1",
        "ALTER TABLE {} ADD COLUMN b INT",
        "ALTER TABLE {} SET TBLPROPERTIES ('one' = '1')",
        "ALTER TABLE {} DROP PARTITION (p = 'x')",
        "TRUNCATE TABLE {} PARTITION (p = 'x')",
        "COMMENT ON TABLE {} IS 'old'",
        "ANALYZE TABLE {} COMPUTE STATISTICS",
        "ANALYZE TABLE {} COMPUTE DELTA STATISTICS",
        "OPTIMIZE {}",
        "REORG TABLE {} APPLY (PURGE)",
        "VACUUM {}",
        "RESTORE TABLE {} TO VERSION AS OF 0",
        "GENERATE symlink_format_manifest FOR TABLE {}",
        "REPLACE TABLE {} (a INT) USING deltalog",
    ):
        with pytest.raises((deltalog.DeltaError, PySparkException)):
            spark.sql(statement.format(f"deltalog.`{table}@v0`"))
    rows_of_one = spark.range(1).selectExpr("CAST(id AS INT) AS a", "'x' AS p", "1.0D AS v")
    writer = rows_of_one.writeTo(f"deltalog.`{table}@v0`")
    for write in (
        writer.append,
        writer.overwritePartitions,
        lambda: writer.overwrite(sf.lit(True)),
        lambda: rows_of_one.write.insertInto(f"deltalog.`{table}@v0`", overwrite=True),
    ):
        with pytest.raises((deltalog.DeltaError, PySparkException)):
            write()
    assert deltalog.DeltaTable(table).version() == 1
    assert not Path(f"{table}@v0").exists()
    # What follows the path is neither a time nor part of an existing path.
    for end in ("@20269999000000000", "@v", "@0"):
        with pytest.raises(NotATableError):
            load(f"{table}{end}")
    write_deltalake(f"{table}@v0", pa.table({"other": [1, 2, 3]}))
    assert load(f"{table}@v0").columns == spark.table(f"deltalog.`{table}@v0`").columns == ["other"]
    assert spark.read.format("deltalog").option("versionAsOf", 0).load(f"{table}@v0").columns == ["other"]


def test_rows_of_a_version_in_the_path_may_be_old(spark: SparkSession, table: str) -> None:
    spark.sql(f"DELETE FROM deltalog.`{table}` WHERE a = 1")
    spark.read.format("deltalog").load(f"{table}@v0").write.format("deltalog").mode("overwrite").save(table)
    assert spark.read.format("deltalog").load(table).count() == 2


def test_time_travel_by_version_and_timestamp(spark: SparkSession, table: str) -> None:
    assert spark.read.format("deltalog").option("versionAsOf", 0).load(table).count() == 2
    assert spark.sql(f"SELECT * FROM deltalog.`{table}` VERSION AS OF 0").count() == 2
    with pytest.raises(VersionNotFoundError, match="versions 0 to 1"):
        spark.read.format("deltalog").option("timestampAsOf", "2100-01-01").load(table)
    newest = datetime.datetime.fromtimestamp(
        deltalog.DeltaTable(table).history(1)[0]["timestamp"] / 1000, datetime.timezone.utc
    ).isoformat()
    assert spark.read.format("deltalog").option("timestampAsOf", newest).load(table).count() == 3
    assert spark.sql(f"SELECT * FROM deltalog.`{table}` TIMESTAMP AS OF '{newest}'").count() == 3
    both = spark.sql(
        f"SELECT count(*) FROM deltalog.`{table}` VERSION AS OF 0 UNION ALL SELECT count(*) FROM deltalog.`{table}`"
    )
    assert rows(both) == [(2,), (3,)]


def test_a_dataframe_keeps_its_snapshot_and_a_name_sees_the_newest(spark: SparkSession, table: str) -> None:
    pinned = [spark.read.format("deltalog").load(table), spark.table(f"deltalog.`{table}`")]
    write_deltalake(
        table, pa.table({"a": pa.array([4], pa.int32()), "p": ["x"], "v": [4.5]}), mode="overwrite"
    )
    for frame in pinned:
        assert frame.count() == 3
    assert spark.table(f"deltalog.`{table}`").count() == 1
    assert spark.read.format("deltalog").load(table).count() == 1


def test_file_metadata_is_correct(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("deltalog").load(table)
    found = frame.select("_metadata.file_path", "_metadata.file_size", "_metadata.row_index").collect()
    assert len(found) == 3
    files = list(Path(table).rglob("*.parquet"))
    assert {Path(row.file_path.removeprefix("file://")).name for row in found} == {
        file.name for file in files
    }
    assert {row.file_size for row in found} == {file.stat().st_size for file in files}
    assert {row.row_index for row in found} == {0}
    assert len(frame.inputFiles()) == 3


def test_fields_of_the_metadata_need_no_struct_for_each_row(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("deltalog").load(table)
    several = frame.where("_metadata.row_index < 7 AND a > 0").selectExpr(
        "a", "_metadata.file_size + _metadata.row_index AS n", "concat('in ', _metadata.file_name) AS f"
    )
    whole = frame.where("_metadata.row_index < 7 AND a > 0").selectExpr(
        "a", "_metadata AS m", "_metadata.file_name"
    )
    plan = several._jdf.queryExecution().executedPlan().toString()
    assert "FileScan" in plan
    assert "named_struct" not in plan
    expected = {(row.a, row.m.file_size + row.m.row_index, row.file_name) for row in whole.collect()}
    found = several.collect()
    assert len(found) == len(expected) == 3
    assert {(row.a, row.n, row.f.removeprefix("in ")) for row in found} == expected


PARTITION_VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 127]),
    (pa.int16(), [-32768, 32767]),
    (pa.int32(), [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1]),
    (pa.float32(), [1.5, -0.25]),
    (pa.float64(), [0.1, -2.5e10]),
    (
        pa.decimal128(38, 10),
        [decimal.Decimal("1234567890123456789012345678.0123456789"), decimal.Decimal("0.0000000001")],
    ),
    (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    (pa.string(), ["a/b=c%20 d", "é🙂"]),
]


def test_partition_values_of_every_type_are_read(spark: SparkSession, path: str) -> None:
    """PROTOCOL.md, "Partition Value Serialization". The table of another writer has a partition column of each type."""
    columns = {f"p{i}": pa.array([*values, None], kind) for i, (kind, values) in enumerate(PARTITION_VALUES)}
    write_deltalake(
        path, pa.table({**columns, "n": pa.array([0, 1, 2], pa.int64())}), partition_by=list(columns)
    )
    found = spark.read.format("deltalog").load(path).orderBy("n").collect()
    for i, (kind, values) in enumerate(PARTITION_VALUES):
        assert [row[f"p{i}"] for row in found] == [*values, None], kind


def test_self_joins_and_subqueries_in_one_plan(spark: SparkSession, table: str) -> None:
    joined = spark.sql(
        f"SELECT count(*) FROM deltalog.`{table}` l JOIN deltalog.`{table}` r ON l.p = r.p "
        f"WHERE l.a IN (SELECT a FROM deltalog.`{table}`)"
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


@pytest.fixture
def ignoring_missing_files(spark: SparkSession) -> Iterator[None]:
    """Makes Spark ignore missing files. Users may have reasons to do so for plain files, but rows of a Delta table
    would be lost silently.
    """
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    yield
    spark.conf.unset("spark.sql.files.ignoreMissingFiles")


@pytest.mark.usefixtures("ignoring_missing_files")
def test_every_action_reports_a_missing_file(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """Every action reports a missing file, even if other tables and versions were planned earlier, or if the table
    occurs twice in the same query.

    For the second reference to a table, Spark copies the relation.
    """
    other = str(tmp_path / "a table 2")
    spark.range(1).selectExpr("cast(id AS int) a").write.format("deltalog").save(other)
    frame = spark.read.format("deltalog").load(table)
    frame.collect()
    spark.read.format("deltalog").option("versionAsOf", 0).load(table).collect()
    lost = next(Path(table, "p=__HIVE_DEFAULT_PARTITION__").glob("*.parquet"))
    lost.unlink()
    actions: list[Callable[[], Any]] = [
        frame.collect,
        frame.where("v > 0").count,
        frame.toPandas,
        lambda: frame.join(spark.read.format("deltalog").load(other), "a").collect(),
        lambda: spark.sql(f"SELECT max(v) FROM deltalog.`{table}`").show(),
        lambda: spark.sql(
            f"WITH a AS (SELECT max(v) m FROM deltalog.`{table}` WHERE p = 'x'), "
            f"b AS (SELECT max(v) n FROM deltalog.`{table}` WHERE p IS NULL) SELECT * FROM a, b"
        ).collect(),
        lambda: spark.sql(
            f"SELECT l.v, r.v FROM deltalog.`{table}` l FULL JOIN deltalog.`{table}` r ON l.p <=> r.p"
        ).collect(),
        lambda: frame.write.format("noop").mode("overwrite").save(),
        lambda: frame.write.format("deltalog").save(str(tmp_path / "copy")),
    ]
    for action in actions:
        with pytest.raises(MissingFileError, match="the file is not there") as caught:
            action()
        error = caught.value
        assert (error.version, error.path) == (1, f"p=__HIVE_DEFAULT_PARTITION__/{lost.name}")
        assert str(error.table).endswith("/a%20table")
        assert "restore the file" in str(error.hint)
    assert not Path(tmp_path / "copy" / "_delta_log").exists()
    assert spark.read.format("deltalog").option("versionAsOf", 0).load(table).count() == 2


def test_a_missing_file_is_reported_after_its_table_was_read_again(spark: SparkSession, table: str) -> None:
    """A missing file is still reported after the same version was read again, and after more tables were read than are
    kept open.
    """
    frame = spark.read.format("deltalog").load(table).where("a > 0")
    frame._jdf.queryExecution().executedPlan()
    spark.read.format("deltalog").load(table)
    planner._planners.clear()
    gc.collect()
    for lost in Path(table).rglob("*.parquet"):
        lost.unlink()
    with pytest.raises(MissingFileError, match="the file is not there") as caught:
        frame.collect()
    assert caught.value.version == 1


def test_a_dropped_planner_is_created_again_from_the_same_table_only(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    frames = [spark.read.format("deltalog").load(table).where(f"a > {number}") for number in range(3)]
    planner._planners.clear()
    assert len(rows(frames[0])) == 3
    Path(table).rename(tmp_path / "moved away")
    planner._planners.clear()
    with pytest.raises(NotATableError):
        frames[1].collect()
    spark.range(1).selectExpr("cast(id AS int) a", "'x' p", "1.5D v").write.format("deltalog").save(table)
    for _ in range(2):
        with pytest.raises(TableReplacedError, match="was dropped") as caught:
            frames[2].collect()
        assert caught.value.version == 1
        spark.sql(f"INSERT INTO deltalog.`{table}` SELECT 1, 'x', 2.5D")


def test_a_listing_that_cannot_be_written_leaves_no_file(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __len__(self) -> int:
            return 1 << 30

        def write(self, name: str) -> None:
            Path(name).write_bytes(b"the first part")
            raise OSError("no space left on device")

    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    monkeypatch.setattr(planner.Planner, "_files", lambda *_: Full())
    with pytest.raises(OSError, match="no space left"):
        spark.read.format("deltalog").load(table).collect()
    assert list(directory.iterdir()) == []


OLD_CALENDAR = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
}


@pytest.mark.parametrize("spelling", ["by path", "by name twice"])
def test_legacy_sessions_do_not_shift_dates_of_other_writers(
    spark: SparkSession, path: str, spelling: str
) -> None:
    """Settings for the old calendar do not shift dates of other writers. Dates are in the old calendar only if a
    file's footer says that Spark wrote them so.
    """
    day, moment = datetime.date(1500, 1, 1), datetime.datetime(1500, 1, 1, 12, tzinfo=datetime.timezone.utc)
    write_deltalake(path, pa.table({"d": [day], "t": pa.array([moment], pa.timestamp("us", "UTC"))}))
    for name, value in OLD_CALENDAR.items():
        spark.conf.set(name, value)
    try:
        if spelling == "by path":
            frame = spark.read.format("deltalog").load(path)
        else:
            table = f"(SELECT * FROM deltalog.`{path}` WHERE d >= DATE'1500-01-01')"
            frame = spark.sql(f"SELECT r.d, r.t FROM {table} l JOIN {table} r ON l.d = r.d")
        columns = ["string(d)", "timestampdiff(HOUR, TIMESTAMP'1500-01-01 00:00:00Z', t)"]
        assert frame.selectExpr(*columns).collect() == [("1500-01-01", 12)]
    finally:
        for name in OLD_CALENDAR:
            spark.conf.unset(name)


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_files_marked_as_legacy_are_rebased(spark: SparkSession, path: str, kind: str) -> None:
    """Dates and timestamps are converted if a file's footer has `org.apache.spark.legacyDateTime` or `legacyINT96`,
    which Spark writes in LEGACY mode.
    """
    settings = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": kind,
    }
    rows = spark.sql("SELECT DATE'1500-01-01' AS d, TIMESTAMP'1500-01-01 12:00:00Z' AS t")
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        rows.coalesce(1).write.parquet(path)
    finally:
        for name in settings:
            spark.conf.unset(name)
    [file] = Path(path).glob("*.parquet")
    write_deltalake(
        f"{path} 2", pa.table({"d": pa.array([], pa.date32()), "t": pa.array([], pa.timestamp("us", "UTC"))})
    )
    file.rename(Path(f"{path} 2", file.name))
    add = {"path": file.name, "partitionValues": {}, "size": Path(f"{path} 2", file.name).stat().st_size}
    commit = Path(f"{path} 2", "_delta_log", f"{1:020}.json")
    commit.write_text(json.dumps({"add": {**add, "modificationTime": 0, "dataChange": True}}))
    found = spark.read.format("deltalog").load(f"{path} 2")
    assert found.collect() == rows.collect()
    assert found.where("d = DATE'1500-01-01' AND t = TIMESTAMP'1500-01-01 12:00:00Z'").count() == 1


def test_missing_files_outside_of_tables_keep_sparks_error(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.read.format("deltalog").load(table).collect()
    plain = str(tmp_path / "a table of plain files")
    spark.range(2).write.parquet(plain)
    frame = spark.read.parquet(plain)
    for file in Path(plain).glob("*.parquet"):
        file.unlink()
    with pytest.raises((Py4JJavaError, PySparkException), match="FILE_NOT_EXIST") as caught:
        frame.collect()
    assert not isinstance(caught.value, deltalog.DeltaError)


def test_filters_keep_the_time_zone_in_which_they_were_created(spark: SparkSession, path: str) -> None:
    """A filter keeps the time zone in which it was created. The zone is part of the expression, but not of its text.

    Files must not be skipped by a time zone that is set in the session later.
    """
    setting = "spark.sql.session.timeZone"
    before = str(spark.conf.get(setting))
    spark.conf.set(setting, "UTC")
    try:
        for moment in ("2024-01-01 02:00:00", "2022-06-01 12:00:00"):
            rows = spark.range(3).selectExpr("id", f"TIMESTAMP '{moment}' AS at")
            rows.coalesce(1).write.format("deltalog").option("delta.enableChangeDataFeed", "true").mode(
                "append"
            ).save(path)
        frames = [
            spark.read.format("deltalog").load(path).where("year(at) = 2024"),
            spark.read.format("deltalog")
            .option("readChangeFeed", "true")
            .option("startingVersion", 0)
            .load(path)
            .where("year(at) = 2024"),
            spark.read.format("deltalog")
            .load(path)
            .where("CAST(at AS date) = DATE'2024-01-01'")
            .groupBy()
            .count(),
        ]
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW of_2024_in_utc AS SELECT * FROM deltalog.`{path}` WHERE year(at) = 2024"
        )
        spark.conf.set(setting, "America/New_York")
        frames.append(spark.table("of_2024_in_utc"))
        assert [len(frame.collect()) for frame in frames] == [3, 3, 1, 3]
        assert frames[2].collect()[0][0] == 3
        assert spark.read.format("deltalog").load(path).where("year(at) = 2024").count() == 0
    finally:
        spark.conf.set(setting, before)


def test_strings_with_a_collation_are_not_pruned(spark: SparkSession, path: str) -> None:
    """Files are not skipped by filters on strings with a collation. The schema's `__COLLATIONS` define how Spark
    compares these strings, but statistics are in the order of bytes.
    """
    write_deltalake(path, pa.table({"name": ["ABC"], "other": ["abc"], "n": [1]}))
    write_deltalake(path, pa.table({"name": ["xyz"], "other": ["a"], "n": [2]}), mode="append")
    log = Path(path) / "_delta_log" / f"{0:020}.json"
    text = log.read_text()
    for name in ("name", "other"):
        field = json.dumps(
            json.dumps(
                {"name": name, "type": "string", "nullable": True, "metadata": {}}, separators=(",", ":")
            )
        )[1:-3]
        assert field in text
        text = text.replace(
            field, field + json.dumps(json.dumps({"__COLLATIONS": {name: "spark.UTF8_LCASE"}}))[2:-2]
        )
    log.write_text(text)
    frame = spark.read.format("deltalog").load(path)
    assert "UTF8_LCASE" in frame.schema["name"].dataType.simpleString()
    assert [row.n for row in frame.where("name = 'abc'").collect()] == [1]
    assert frame.where("name = 'abc'").count() == 1
    # The text of this filter contains no collation.
    assert [row.n for row in frame.where("name = other").collect()] == [1]
    assert [row.n for row in frame.where("name >= 'XYZ'").collect()] == [2]
    plain = spark.read.format("deltalog").load(path).where("name COLLATE UTF8_BINARY = 'abc'")
    assert plain.count() == 0
