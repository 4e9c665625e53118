"""Aggregates that the log answers:

what Spark's scan finds, or the scan itself. (PROTOCOL, "Per-file Statistics", "Deletion Vectors".)
"""

import datetime
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import deltalog
import deltalog.spark
from benches.tables import vectors

RULE = "io.deltalog.spark.AnswersFromLog"
# Of each file: month and zone of its partition, its numbers, which of its rows are deleted.
FILES: list[tuple[str | None, str | None, list[int | None], list[int] | None]] = [
    ("2024-01-01", "a", [5, 3, None], None),
    ("2024-01-01", "a", [9, -7], None),
    ("2024-02-01", "b", [2, 4, 6], [1]),
    ("2024-02-01", None, [None, None], None),
    (None, "b", [1], None),
    (None, "c", [8, 8], [0, 1]),  # every row is deleted: the partition is not there
]


def write(path: Path, counted: bool = True) -> str:
    """A table by hand, its columns mapped by name; without statistics the log does not tell how many rows a
    file has.
    """
    (path / "_delta_log").mkdir(parents=True)
    columns = [
        ("month", "date", "p1"),
        ("zone", "string", "p2"),
        ("n", "integer", "c1"),
        ("text", "string", "c2"),
    ]
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
        }
        for number, (name, kind, physical) in enumerate(columns, 1)
    ]
    features = ["deletionVectors", "columnMapping"]
    metadata = {"id": "t", "format": {"provider": "parquet"}, "partitionColumns": ["month", "zone"]}
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "4"}
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                **metadata,
                "configuration": configuration,
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
            }
        },
    ]
    descriptors = iter(vectors.write(path, [np.array(deleted) for *_, deleted in FILES if deleted]))
    for number, (month, zone, numbers, deleted) in enumerate(FILES):
        file = path / f"{number}.parquet"
        pq.write_table(
            pa.table({"c1": pa.array(numbers, pa.int32()), "c2": [f"row {n}" for n in numbers]}), file
        )
        known = [n for n in numbers if n is not None]
        statistics: dict[str, Any] = {
            "numRecords": len(numbers),
            "tightBounds": not deleted,
            "nullCount": {"c1": numbers.count(None)},
        }
        statistics |= {"minValues": {"c1": min(known)}, "maxValues": {"c1": max(known)}} if known else {}
        add = {
            "path": file.name,
            "partitionValues": {"p1": month, "p2": zone},
            "size": file.stat().st_size,
            "modificationTime": 0,
        }
        add |= {"dataChange": True, "stats": json.dumps(statistics)} if counted else {"dataChange": True}
        actions.append({"add": {**add, "deletionVector": next(descriptors)} if deleted else add})
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(path)


def answers(spark: SparkSession, query: str, caplog: pytest.LogCaptureFixture) -> tuple[list[str], bool]:
    """The rows, which must be those without the rule; and whether the log gave them."""
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="deltalog.spark"):
        found = spark.sql(query)
        rows, schema = sorted(map(str, found.collect())), found.schema
    from_log = any("the log answers" in message for message in caplog.messages)
    assert from_log != any("may hold" in message for message in caplog.messages), "either the log or a scan"
    spark.conf.set("spark.sql.optimizer.excludedRules", RULE)
    try:
        caplog.clear()
        scanned = spark.sql(query)
        with caplog.at_level(logging.INFO, logger="deltalog.spark"):
            assert (rows, schema) == (sorted(map(str, scanned.collect())), scanned.schema)
        assert any("may hold" in message for message in caplog.messages)
    finally:
        spark.conf.unset("spark.sql.optimizer.excludedRules")
    return rows, from_log


FROM_LOG = [
    "SELECT count(*), count(1), count(month), count(zone, month), count(DISTINCT zone), min(month), max(zone) FROM counted",
    "SELECT month, count(*) + 1, max(zone) FROM counted GROUP BY month",
    "SELECT DISTINCT zone FROM counted",
    "SELECT count(*) FROM counted WHERE month = DATE '2024-02-01' OR zone IS NULL",
    "SELECT zone, count(*) FROM counted WHERE zone = 'nowhere' GROUP BY zone",
    "SELECT year(month) y, upper(zone), count(*) FROM counted WHERE zone RLIKE '[ab]' GROUP BY ALL HAVING count(*) > 1",
    "SELECT min(n), max(n), count(*), count(*) FILTER (WHERE month IS NULL) FROM counted WHERE zone = 'a'",
    "SELECT month, min(n) FROM counted WHERE zone = 'a' OR zone IS NULL GROUP BY month",
    "SELECT count(*) FROM counted WHERE zone = 'nowhere' UNION ALL SELECT count(*) FROM counted",
]
FROM_ROWS = [
    "SELECT min(n) FROM counted",  # a file with deleted rows has wide bounds
    "SELECT max(text), count(*) FROM counted",
    "SELECT count(n) FROM counted",
    "SELECT count(*) FROM counted WHERE n > 2",
    "SELECT n, count(*) FROM counted GROUP BY n",
    "SELECT max(n + 1) FROM counted WHERE zone = 'a'",
    "SELECT sum(length(zone)) FROM counted",
    "SELECT avg(length(zone)) FROM counted",
    "SELECT count(*) FROM counted WHERE rand() + 1 > 0",
    "SELECT count(*) FROM counted WHERE zone = (SELECT string(max(id)) FROM range(3))",
    "SELECT zone, max(n) FILTER (WHERE n > 2) FROM counted WHERE zone = 'a' GROUP BY zone",
    "SELECT _metadata.file_name, count(*) FROM deltalog.`{path}` GROUP BY ALL",
    "SELECT count(*) FROM (SELECT * FROM counted LIMIT 3)",
]


def test_the_log_answers_as_the_scan_does(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "t")
    spark.read.format("deltalog").load(path).createOrReplaceTempView("counted")
    assert answers(spark, "SELECT count(*) c FROM counted", caplog) == (["Row(c=10)"], True)
    for query in FROM_LOG:
        assert answers(spark, query, caplog)[1], query
    for query in FROM_ROWS:
        plan = spark.sql(query.format(path=path))._jdf.queryExecution().optimizedPlan().toString()
        assert "LocalRelation" not in plan, query


def test_without_statistics_rows_are_read(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark.read.format("deltalog").load(write(tmp_path / "t", counted=False)).createOrReplaceTempView(
        "counted"
    )
    assert answers(spark, "SELECT count(*) c FROM counted", caplog) == (["Row(c=10)"], False)
    assert answers(spark, "SELECT zone, count(*) FROM counted GROUP BY zone", caplog)[1] is False


def test_tables_without_partitions_and_without_rows(
    spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    spark.range(0).selectExpr("id", "int(id) AS b").write.format("deltalog").save(path)
    queries = [
        "SELECT count(*), min(id), max(b) FROM counted",
        "SELECT 'x', count(*) FROM counted GROUP BY 1",
    ]
    for rows in (0, 3):
        spark.range(rows).selectExpr("id", "int(id) AS b").write.format("deltalog").mode("append").save(path)
        spark.read.format("deltalog").load(path).createOrReplaceTempView("counted")
        assert all(answers(spark, query, caplog)[1] for query in queries)
    old = spark.read.format("deltalog").option("versionAsOf", 0).load(path)
    assert (old.count(), spark.table("counted").count()) == (0, 3)
    for file in Path(path).glob("*/*.parquet"):
        file.unlink()
    assert spark.table("counted").count() == 3


def test_a_change_data_feed_is_read(spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture) -> None:
    deltalog.DeltaTable.create(
        path, pa.schema([("id", pa.int64())]), configuration={"delta.enableChangeDataFeed": "true"}
    )
    spark.range(3).write.format("deltalog").mode("append").save(path)
    with caplog.at_level(logging.INFO, logger="deltalog.spark"):
        frame = (
            spark.read.format("deltalog")
            .option("readChangeFeed", True)
            .option("startingVersion", 0)
            .load(path)
        )
        assert frame.groupBy("_commit_version").count().collect() == [(1, 3)]
    assert not any("the log answers" in message for message in caplog.messages)


def test_the_helper_answers_as_in_python(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "t")
    table, python = deltalog.spark.DeltaTable.forPath(spark, path), deltalog.DeltaTable(path)
    assert table.count() == python.count() == 10
    assert table.count("zone = 'a' AND n > 3") == 2
    by_partition = table.count_by_partition("month > '2023-12-31'")
    assert by_partition.schema.simpleString() == "struct<month:date,zone:string,count:bigint>"
    first, second = datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)
    assert [tuple(row) for row in by_partition.collect()] == [
        (first, "a", 5),
        (second, None, 2),
        (second, "b", 2),
    ]
    assert (table.min_max("n"), table.min_max("n", "zone = 'a'"), table.min_max("month")) == (
        None,
        (-7, 9),
        (first, second),
    )


def test_conditions_are_in_the_sessions_time_zone(spark: SparkSession, path: str) -> None:
    spark.sql("SELECT TIMESTAMP '2024-01-01 12:00:00' AS t, 1 AS n").write.format("deltalog").partitionBy(
        "t"
    ).save(path)
    assert deltalog.spark.DeltaTable.forPath(spark, path).count("t = TIMESTAMP '2024-01-01 12:00:00'") == 1
    assert deltalog.DeltaTable(path).count("t = TIMESTAMP '2024-01-01 17:00:00'") == 1
