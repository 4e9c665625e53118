"""Optimized writes shuffle rows first, so that many small tasks do not write many small files. The compaction after
writes is tested here, too.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from deltalog import DeltaTable
from deltalog.spark.errors import InvalidArgumentError

WRITE = "spark.databricks.delta.optimizeWrite."
COMPACT = "spark.databricks.delta.autoCompact."
PROPERTY = "delta.autoOptimize.optimizeWrite"


@pytest.fixture(autouse=True)
def settings(spark: SparkSession) -> Iterator[None]:
    """Removes the settings that a test has made."""
    yield
    names = ("enabled", "binSize", "maxShufflePartitions", "maxFileSize", "minFileSize", "minNumFiles")
    for prefix in (WRITE, COMPACT):
        for name in names:
            spark.conf.unset(prefix + name)


def many_tasks(spark: SparkSession, tasks: int = 40, rows: int = 4_000) -> DataFrame:
    """Returns rows in this many tasks. Each task has rows of all partitions."""
    return spark.range(0, rows, 1, tasks).select("id", (sf.col("id") % 4).cast("string").alias("p"))


def files_by_partition(path: str) -> Counter[Any]:
    return Counter(Path(uri).parent.name for uri in deltalake.DeltaTable(path).file_uris())


def ids(path: str) -> list[int]:
    return sorted(deltalake.DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


def sizes(path: str) -> list[int]:
    return [int(size) for size in deltalake.DeltaTable(path).get_add_actions()["size_bytes"].to_pylist()]


def write(data: DataFrame, path: str, *partition_by: str, mode: str = "append", **options: str) -> None:
    data.write.format("deltalog").partitionBy(*partition_by).options(**options).mode(mode).save(path)


@pytest.mark.slow
def test_a_thousand_small_tasks_leave_one_file_for_each_partition(spark: SparkSession, path: str) -> None:
    data = many_tasks(spark, 1_000, 20_000)
    write(data, path, "p", optimizeWrite="true")
    assert files_by_partition(path) == {f"p={value}": 1 for value in range(4)}
    assert ids(path) == list(range(20_000))
    write(data, path + "2", optimizeWrite="true")
    assert len(sizes(path + "2")) == 1
    assert ids(path + "2") == list(range(20_000))


@pytest.mark.newest
def test_each_setting_and_their_precedence(spark: SparkSession, path: str) -> None:
    cases: list[tuple[str | None, str | None, str | None, bool]] = [
        (None, None, None, False),
        (None, None, "true", True),
        (None, "true", "false", True),
        (None, "false", "true", False),
        ("true", "false", "false", True),
        ("false", "true", "true", False),
    ]
    for number, (option, setting, table_property, expected) in enumerate(cases):
        spark.conf.unset(f"{WRITE}enabled")
        if setting is not None:
            spark.conf.set(f"{WRITE}enabled", setting)
        options = {} if option is None else {"optimizeWrite": option}
        if table_property is not None:
            options[PROPERTY] = table_property
        write(many_tasks(spark, 5, 100), f"{path}{number}", **options)
        assert len(sizes(f"{path}{number}")) == (1 if expected else 5), (option, setting, table_property)


@pytest.mark.every_spark
def test_tasks_have_about_the_requested_size(spark: SparkSession, path: str) -> None:
    """The tasks of an optimized write have about the requested size. If a partition is too large for one task, its rows
    are divided by the tasks from which they come.
    """
    data = many_tasks(spark, 40, 400_000).withColumn("text", sf.sha2(sf.col("id").cast("string"), 512))
    spark.conf.set(f"{WRITE}binSize", "8m")
    write(data, path, optimizeWrite="true")
    # The 400,000 strings of 128 digits are about 60 MB in a shuffle, compressed to about 40 MB.
    found = sizes(path)
    assert 3 <= len(found) <= 12, found
    assert max(found) < 3 * min(found), found
    assert ids(path) == list(range(400_000))


@pytest.mark.every_spark
def test_the_shuffle_is_in_the_plan_of_the_executors(spark: SparkSession, path: str) -> None:
    """The shuffle is part of the executors' job: it has a map stage with one task for each partition of the data, and
    a second stage with few tasks, which write.
    """
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("optimized", "a write")
    write(many_tasks(spark, 7, 70), path, "p", optimizeWrite="true")
    tasks = []
    for job in tracker.getJobIdsForGroup("optimized"):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else []:
            found = tracker.getStageInfo(stage)
            tasks += [found.numTasks] if found and found.numCompletedTasks else []
    assert {7, 1} <= set(tasks), tasks


@pytest.mark.newest
def test_sql_and_catalog_writes(spark: SparkSession, path: str) -> None:
    many_tasks(spark).createOrReplaceTempView("tasks")
    location = f"LOCATION '{path}'"
    spark.sql(
        f"CREATE TABLE optimized USING deltalog PARTITIONED BY (p) {location} TBLPROPERTIES ('{PROPERTY}' = 'true') "
        "AS SELECT * FROM tasks"
    )
    try:
        assert files_by_partition(path) == {f"p={value}": 1 for value in range(4)}
        spark.sql("INSERT INTO optimized SELECT * FROM tasks")
        assert files_by_partition(path) == {f"p={value}": 2 for value in range(4)}
        spark.sql("INSERT OVERWRITE optimized SELECT * FROM tasks")
        assert files_by_partition(path) == {f"p={value}": 1 for value in range(4)}
        many_tasks(spark).writeTo("optimized").append()
        assert files_by_partition(path) == {f"p={value}": 2 for value in range(4)}
        assert ids(path) == sorted(2 * list(range(4_000)))
    finally:
        spark.sql("DROP TABLE optimized")


def test_statements_that_write_rows(spark: SparkSession, path: str) -> None:
    """Statements use optimized writes: an UPDATE adds at most one file to each partition. The rows are right although a
    statement processes the rows to write and the rows to remove together.
    """
    write(many_tasks(spark, 12), path, "p", **{"delta.enableDeletionVectors": "true"})
    before = files_by_partition(path)
    spark.conf.set(f"{WRITE}enabled", "true")
    spark.sql(f"UPDATE deltalog.`{path}` SET id = id + 10000 WHERE id % 3 = 0")
    more = files_by_partition(path) - before
    assert all(count <= 1 for count in more.values()), more
    many_tasks(spark, 12).selectExpr("id * 2 AS id", "p").createOrReplaceTempView("source")
    spark.sql(
        f"MERGE INTO deltalog.`{path}` t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id + 20000 "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id >= 27000")
    model = [row + 10_000 if row % 3 == 0 else row for row in range(4_000)]
    source = {2 * row for row in range(4_000)}
    inserted = source - set(model)
    model = [row + 20_000 if row in source else row for row in model] + sorted(inserted)
    expected = sorted(row for row in model if row < 27_000)
    table = spark.read.format("deltalog").load(path)
    assert sorted(row.id for row in table.select("id").collect()) == expected


@pytest.mark.newest
def test_generated_and_identity_columns(spark: SparkSession, path: str) -> None:
    spark.sql(
        f"CREATE TABLE counted (id BIGINT, p STRING, n BIGINT GENERATED ALWAYS AS IDENTITY) USING deltalog "
        f"PARTITIONED BY (p) LOCATION '{path}' TBLPROPERTIES ('{PROPERTY}' = 'true')"
    )
    try:
        for _ in range(2):
            many_tasks(spark).write.format("deltalog").mode("append").save(path)
        assert files_by_partition(path) == {f"p={value}": 2 for value in range(4)}
        numbers = [row.n for row in spark.read.format("deltalog").load(path).select("n").collect()]
        assert len(numbers) == len(set(numbers)) == 8_000
    finally:
        spark.sql("DROP TABLE counted")
    other = path + "2"
    spark.sql(
        f"CREATE TABLE computed (id BIGINT, p STRING, q BIGINT GENERATED ALWAYS AS (id % 3)) USING deltalog "
        f"PARTITIONED BY (q) LOCATION '{other}' TBLPROPERTIES ('{PROPERTY}' = 'true')"
    )
    try:
        many_tasks(spark).write.format("deltalog").mode("append").save(other)
        assert files_by_partition(other) == {f"q={value}": 1 for value in range(3)}
    finally:
        spark.sql("DROP TABLE computed")


def test_without_adaptive_execution_rows_are_not_shuffled(
    spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        with caplog.at_level(logging.WARNING, "deltalog.spark"):
            write(many_tasks(spark, 3), path, "p", optimizeWrite="true")
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert files_by_partition(path) == {f"p={value}": 3 for value in range(4)}
    assert "set spark.sql.adaptive.enabled to true" in caplog.text
    assert ids(path) == list(range(4_000))


def test_large_parts_are_divided_whatever_the_sessions_settings(spark: SparkSession, path: str) -> None:
    name = "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled"
    spark.conf.set(name, "false")
    spark.conf.set(f"{WRITE}binSize", "100k")
    try:
        data = many_tasks(spark, 8, 8_000).withColumn("text", sf.sha2(sf.col("id").cast("string"), 512))
        write(data, path, optimizeWrite="true")
        assert spark.conf.get(name) == "false"
    finally:
        spark.conf.unset(name)
    assert 2 <= len(sizes(path)) <= 8


@pytest.mark.every_spark
def test_streams_write_through_foreach_batch(spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams write through `foreachBatch`. Spark 4.0 runs them without adaptive execution, and therefore without the
    shuffle.
    """
    is_adaptive = []
    write(many_tasks(spark, 1, 0), path, "p", **{PROPERTY: "true", "delta.autoOptimize.autoCompact": "true"})
    for number in range(3):
        many_tasks(spark, 8).write.parquet(str(tmp_path / "source"), mode="append")
        spark.conf.set(f"{COMPACT}minNumFiles", 3)

        def append(batch: DataFrame, _: int) -> None:
            is_adaptive.append(batch.sparkSession.conf.get("spark.sql.adaptive.enabled"))
            batch.write.format("deltalog").mode("append").save(path)

        stream = spark.readStream.schema("id LONG, p STRING").parquet(str(tmp_path / "source")).writeStream
        stream = stream.foreachBatch(append).option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.trigger(availableNow=True).start().awaitTermination()
        # Each batch adds one file to each partition. The third file exceeds the limit for a compaction.
        if set(is_adaptive) == {"true"}:
            assert set(files_by_partition(path).values()) == {[1, 2, 1][number]}
    assert len(set(is_adaptive)) == 1
    assert set(is_adaptive) == {"true"} or spark.version.startswith("4.0.")
    assert ids(path) == sorted(3 * list(range(4_000)))


@pytest.mark.newest
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (f"{WRITE}enabled", "perhaps", "true or false"),
        (f"{WRITE}binSize", "many", "512m"),
        (f"{WRITE}binSize", "0", "512m"),
        (f"{WRITE}maxShufflePartitions", "0", "at least 1"),
        (f"{COMPACT}enabled", "perhaps", "true, false, auto or legacy"),
        (f"{COMPACT}maxFileSize", "0", "at least 1"),
        (f"{COMPACT}minNumFiles", "-1", "at least 0"),
    ],
)
def test_values_without_a_meaning_are_refused_by_name(
    spark: SparkSession, path: str, name: str, value: str, words: str
) -> None:
    write(many_tasks(spark, 1, 4), path)
    spark.conf.set(name, value)
    try:
        for run in (
            lambda: write(many_tasks(spark, 1, 4), path),
            lambda: spark.sql(f"UPDATE deltalog.`{path}` SET id = 0").collect(),
        ):
            with pytest.raises(InvalidArgumentError, match=name) as error:
                run()
            assert words in str(error.value)
    finally:
        spark.conf.unset(name)
    assert len(sizes(path)) == 1
    with pytest.raises(InvalidArgumentError, match="optimizeWrite"):
        write(many_tasks(spark, 1, 4), path, optimizeWrite="often")


def test_small_files_are_compacted_after_a_write(spark: SparkSession, path: str) -> None:
    write(many_tasks(spark, 5, 20), path, "p", **{"delta.autoOptimize.autoCompact": "true"})
    assert files_by_partition(path) == {f"p={value}": 5 for value in range(4)}
    spark.conf.set(f"{COMPACT}minNumFiles", 6)
    write(many_tasks(spark, 1, 40).where("p = '1'"), path)
    assert files_by_partition(path) == {"p=0": 5, "p=1": 1, "p=2": 5, "p=3": 5}
    optimized, written, _ = DeltaTable(path).history()
    assert (written["operation"], optimized["operation"]) == ("WRITE", "OPTIMIZE")
    assert str(optimized["operationParameters"]["auto"]).lower() == "true"
    assert ids(path) == sorted([*range(20), *range(1, 40, 4)])
    # The session's setting has precedence over the table's property.
    spark.conf.set(f"{COMPACT}enabled", "false")
    write(many_tasks(spark, 1, 40).where("p = '0'"), path)
    assert files_by_partition(path)["p=0"] == 6
    # A statement that writes rows also starts a compaction.
    spark.conf.set(f"{COMPACT}enabled", "true")
    spark.sql(f"UPDATE deltalog.`{path}` SET id = id + 100 WHERE p = '0' AND id = 0")
    assert files_by_partition(path)["p=0"] == 1
    spark.conf.set(f"{COMPACT}minNumFiles", 5)
    spark.conf.set(f"{COMPACT}maxFileSize", 1)
    write(many_tasks(spark, 1, 40).where("p = '2'"), path)
    assert files_by_partition(path)["p=2"] == 6, "no file is smaller than half a byte"
