"""Aggregates that the log can answer agree with a scan. If the log cannot answer an aggregate, the table is scanned.

(PROTOCOL, "Per-file Statistics", "Deletion Vectors".)
"""

import datetime
import itertools
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
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.jars import PACKAGE
from deltalog.spark.read import planner

pytestmark = pytest.mark.usefixtures("answers_from_log")

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
RULE = "io.deltalog.spark.AnswersFromLog"
# For each file: its partition values (month and zone), its numbers, and its deleted rows.
FILES: list[tuple[str | None, str | None, list[int | None], list[int] | None]] = [
    ("2024-01-01", "a", [5, 3, None], None),
    ("2024-01-01", "a", [9, -7], None),
    ("2024-02-01", "b", [2, 4, 6], [1]),
    ("2024-02-01", None, [None, None], None),
    (None, "b", [1], None),
    (None, "c", [8, 8], [0, 1]),  # All rows of this partition are deleted, so it does not occur in results.
]


def write(path: Path, counted: bool = True) -> str:
    """Writes a table with column mapping by name, without Spark. If `counted` is False, the table has no statistics."""
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
    """Returns the result of a query, and whether it came from the log. Checks that the result is the same without the
    optimizer rule.
    """
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="deltalog.spark"):
        found = spark.sql(query)
        rows, schema = sorted(map(str, found.collect())), found.schema
    from_log = any("the log answers" in message for message in caplog.messages)
    assert from_log != any("may contain" in message for message in caplog.messages), (
        "either the log or a scan"
    )
    spark.conf.set(EXCLUDED_RULES, RULE)
    try:
        caplog.clear()
        scanned = spark.sql(query)
        with caplog.at_level(logging.INFO, logger="deltalog.spark"):
            assert (rows, schema) == (sorted(map(str, scanned.collect())), scanned.schema)
        assert any("may contain" in message for message in caplog.messages)
    finally:
        spark.conf.set(EXCLUDED_RULES, "")
    return rows, from_log


FROM_LOG = [
    (
        "SELECT count(*), count(1), count(month), count(zone, month), count(DISTINCT zone), min(month), max(zone) "
        "FROM counted"
    ),
    "SELECT month, count(*) + 1, max(zone) FROM counted GROUP BY month",
    "SELECT DISTINCT zone FROM counted",
    "SELECT count(*) FROM counted WHERE month = DATE '2024-02-01' OR zone IS NULL",
    "SELECT zone, count(*) FROM counted WHERE zone = 'nowhere' GROUP BY zone",
    "SELECT year(month) y, upper(zone), count(*) FROM counted WHERE zone RLIKE '[ab]' GROUP BY ALL HAVING count(*) > 1",
    "SELECT min(n), max(n), count(*), count(*) FILTER (WHERE month IS NULL) FROM counted WHERE zone = 'a'",
    "SELECT month, min(n) FROM counted WHERE zone = 'a' OR zone IS NULL GROUP BY month",
    "SELECT count(*) FROM counted WHERE zone = 'nowhere' UNION ALL SELECT count(*) FROM counted",
    "SELECT max(N), min(n), MIN(Month), count(ZONE) FROM counted WHERE Zone = 'a'",
    "SELECT max(Y), count(*), min(y) FROM (SELECT MONTH AS y FROM counted WHERE ZONE = 'a')",
    "SELECT ZONE, max(N), MAX(zone) FROM counted WHERE Zone = 'a' OR zONE IS NULL GROUP BY Zone",
]
FROM_ROWS = [
    "SELECT min(n) FROM counted",  # The bounds of a file with deleted rows are not exact.
    "SELECT max(text), count(*) FROM counted",
    "SELECT max(X) FROM (SELECT N AS x FROM counted WHERE ZONE = 'a')",
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


def test_the_log_and_the_scan_return_the_same_rows(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "t")
    spark.read.format("deltalog").load(path).createOrReplaceTempView("counted")
    assert answers(spark, "SELECT count(*) c FROM counted", caplog) == (["Row(c=10)"], True)
    for query in FROM_LOG:
        assert answers(spark, query, caplog)[1], query
    for query in FROM_ROWS:
        assert not answers(spark, query.format(path=path), caplog)[1], query


def test_tables_without_statistics_are_scanned(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark.read.format("deltalog").load(write(tmp_path / "t", counted=False)).createOrReplaceTempView(
        "counted"
    )
    assert answers(spark, "SELECT count(*) c FROM counted", caplog) == (["Row(c=10)"], False)
    assert answers(spark, "SELECT zone, count(*) FROM counted GROUP BY zone", caplog)[1] is False


def test_the_log_answers_for_tables_without_partitions_or_rows(
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


def test_change_data_feeds_are_scanned(
    spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_delta_table_answers_as_in_python(spark: SparkSession, tmp_path: Path) -> None:
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


def test_conditions_use_the_sessions_time_zone(spark: SparkSession, path: str) -> None:
    spark.sql("SELECT TIMESTAMP '2024-01-01 12:00:00' AS t, 1 AS n").write.format("deltalog").partitionBy(
        "t"
    ).save(path)
    assert deltalog.spark.DeltaTable.forPath(spark, path).count("t = TIMESTAMP '2024-01-01 12:00:00'") == 1
    assert deltalog.DeltaTable(path).count("t = TIMESTAMP '2024-01-01 17:00:00'") == 1


def values(spark: SparkSession, path: str) -> None:
    """Creates the view `numbers` of a table with one file per partition, whose aggregates the log can answer."""
    rows = spark.range(1, 7, numPartitions=1).selectExpr("id AS n", "id % 2 AS p")
    rows.write.format("deltalog").partitionBy("p").save(path)
    spark.read.format("deltalog").load(path).createOrReplaceTempView("numbers")


def test_aggregates_in_joins_subqueries_and_cached_tables_are_correct(
    spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Aggregates in joins, subqueries and cached tables are right. In a self join, Spark gives one side new expression
    ids, and the plan of a cached table has no relation of deltalog.
    """
    values(spark, path)
    queries = {
        "SELECT l.c, r.c FROM (SELECT p, max(N) c FROM numbers GROUP BY p) l JOIN "
        "(SELECT P, count(*) c FROM numbers GROUP BY P) r ON l.P = r.p": ["(5, 3)", "(6, 3)"],
        f"SELECT max(l.N), min(R.p) FROM deltalog.`{path}` l JOIN deltalog.`{path}` R ON l.n = r.N AND l.p = 0": [
            "(6, 0)"
        ],
        "SELECT n FROM numbers WHERE N = (SELECT max(N) FROM numbers WHERE P = 1)": ["(5)"],
        "SELECT count(*) FROM numbers WHERE n IN (SELECT max(n) FROM numbers GROUP BY p)": ["(2)"],
        "SELECT p FROM numbers o WHERE n = (SELECT max(i.N) FROM numbers i WHERE i.P = o.p) ORDER BY p": [
            "(0)",
            "(1)",
        ],
    }
    for query, wanted in queries.items():
        found = spark.sql(query).collect()
        assert sorted(f"({', '.join(map(str, row))})" for row in found) == wanted, query
    spark.sql(f"CACHE TABLE kept AS SELECT * FROM deltalog.`{path}`")
    spark.sql("CACHE TABLE numbers")
    try:
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="deltalog.spark"):
            for name in ("kept", "numbers"):
                assert spark.sql(f"SELECT count(*), max(N) FROM {name}").collect() == [(6, 6)]
                assert "InMemory" in spark.sql(f"SELECT max(N) FROM {name}")._jdf.queryExecution().toString()
        assert not any("the log answers" in message for message in caplog.messages)
    finally:
        spark.sql("UNCACHE TABLE numbers")
        spark.sql("UNCACHE TABLE kept")
        spark.catalog.dropTempView("kept")


def test_case_sensitive_sessions_distinguish_names_that_differ_only_in_case(
    spark: SparkSession, path: str
) -> None:
    values(spark, path)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        query = "SELECT max(n), max(N) FROM (SELECT n, -n AS N FROM numbers)"
        assert spark.sql(query).collect() == [(6, -1)]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_failure_in_python_keeps_the_scan_and_is_logged_once(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    values(spark, path)

    def fail(*_: object) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(planner.Planner, "_answers", fail)
    monkeypatch.setattr(planner, "_failures", itertools.count())
    for _ in range(2):
        assert spark.sql("SELECT count(*), max(n) FROM numbers").collect() == [(6, 6)]
    assert [record.levelname for record in caplog.records if record.exc_info] == ["WARNING"]


def test_a_version_that_cannot_be_opened_again_does_not_fail_the_optimizer(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a version can no longer be opened, the optimizer does not fail, because the query may still work: its rows
    may be cached, or its list of files may be in memory.
    """
    values(spark, path)
    counted = spark.table("numbers").selectExpr("count(*)", "max(n)")
    Path(path).rename(f"{path} moved away")
    planner._planners.clear()
    monkeypatch.setattr(planner, "_failures", itertools.count())
    assert "LocalRelation" not in counted._jdf.queryExecution().optimizedPlan().toString()
    assert [record.levelname for record in caplog.records if record.exc_info] == ["WARNING"]
    with pytest.raises(deltalog.NotATableError):
        counted.collect()


BROKEN_CALLS = f"""
public class BrokenCalls extends {PACKAGE}.PythonCalls {{
  private final {PACKAGE}.PythonCalls calls;
  private final Throwable problem;
  public BrokenCalls({PACKAGE}.PythonCalls calls, Throwable problem) {{
    super(null, 0, null, null, 0);
    this.calls = calls;
    this.problem = problem;
  }}
  public Object call(String role, String method, Object[] arguments) throws Throwable {{
    if (!"answers".equals(method)) {{
      return calls.call(role, method, arguments);
    }}
    if (problem == null) {{
      return new byte[] {{1}};
    }}
    throw problem;
  }}
}}
"""


@pytest.mark.parametrize("problem", [None, "NoSuchMethodError", "NullPointerException"])
def test_a_failure_in_java_keeps_the_scan(spark: SparkSession, path: str, problem: str | None) -> None:
    """If the rule fails in Java, the table is scanned. Here, the answer of Python is malformed, or a Spark release
    lacks a method.
    """
    values(spark, path)
    jvm = Jvm(spark.sparkContext._gateway)
    compiler = jvm.root.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.class_of("PythonCalls").getClassLoader())
    compiler.cook(BROKEN_CALLS)
    broken = compiler.getClassLoader().loadClass("BrokenCalls").getConstructors()[0]
    current = jvm.class_of("Bridge").getDeclaredField("PYTHON")
    current.setAccessible(True)
    program = jvm.class_of("CurrentPython").getDeclaredField("program")
    program.setAccessible(True)
    calls = program.get(current.get(None))
    arguments = jvm.root.java.util.ArrayList()
    arguments.add(calls)
    arguments.add(None if problem is None else getattr(jvm.root.java.lang, problem)("gone"))
    jvm.static("Bridge", "install", broken.newInstance(arguments.toArray()))
    try:
        counted = spark.table("numbers").selectExpr("count(*)", "max(N)")
        assert counted.collect() == [(6, 6)]
        assert "LocalRelation" not in counted._jdf.queryExecution().optimizedPlan().toString()
    finally:
        jvm.static("Bridge", "install", calls)
