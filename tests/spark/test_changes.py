"""The change data feed in Spark's native scan has the same rows as in Python.

The tests of the Python package compare the feed with other implementations.
"""

import datetime
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog
from deltalog.spark.portable import DeltalogDataSource
from tests.golden.expected import Golden, load

WITH_FEED = [golden for golden in load() if "cdf" in golden.expected and golden.outcome == "read"]


def changes(spark: SparkSession, path: Path | str, **options: Any) -> pa.Table:
    return (
        spark.read.format("deltalog")
        .option("readChangeFeed", "true")
        .options(**options)
        .load(str(path))
        .toArrow()
    )


def as_set(table: pa.Table) -> list[str]:
    """Returns the rows as a set, with timestamps without their time zone."""
    rows = table.to_pylist(maps_as_pydicts=None)
    return sorted(
        str(
            {name: value.timestamp() if name == "_commit_timestamp" else value for name, value in row.items()}
        )
        for row in rows
    )


@pytest.mark.parametrize("golden", WITH_FEED, ids=lambda golden: golden.name)
def test_rows_agree_with_python(spark: SparkSession, golden: Golden) -> None:
    feed = golden.expected["cdf"]
    start, end = feed["start_version"], feed["end_version"]
    wanted = pa.table(deltalog.DeltaTable(golden.table).load_cdf(start, end))
    found = changes(spark, golden.table, startingVersion=start, endingVersion=end)
    assert found.column_names == wanted.column_names
    assert as_set(found) == as_set(wanted)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        assert as_set(changes(spark, golden.table, startingVersion=start, endingVersion=end)) == as_set(
            wanted
        )
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.skipif(not WITH_FEED, reason="no golden tables")
def test_filters_and_options_of_the_feed(spark: SparkSession) -> None:
    golden = WITH_FEED[0]
    start = golden.expected["cdf"]["start_version"]
    reader = spark.read.format("deltalog").option("readChangeFeed", "true").option("startingVersion", start)
    frame = reader.load(str(golden.table))
    everything = frame.collect()
    for name in ("_change_type", "_commit_version", "_commit_timestamp"):
        value = everything[0][name]
        assert frame.where(frame[name] == value).count() == sum(row[name] == value for row in everything)
    assert frame.select("_commit_version").count() == frame.count() == len(everything)
    first = min(row["_commit_timestamp"] for row in everything)
    by_time = (
        spark.read.format("deltalog")
        .option("readChangeFeed", "true")
        .option("startingTimestamp", first.isoformat(" "))
    )
    with pytest.raises(deltalog.DeltaError, match="startingVersion or startingTimestamp"):
        spark.read.format("deltalog").option("readChangeFeed", "true").load(str(golden.table))
    with pytest.raises(deltalog.DeltaError, match="readChangeFeed"):
        spark.read.format("deltalog").option("startingVersion", 0).load(str(golden.table))
    with pytest.raises(deltalog.DeltaError, match="cannot be used together"):
        by_time.option("startingVersion", 0).load(str(golden.table))


def test_filters_prune_files(spark: SparkSession, tmp_path: Path) -> None:
    """Files are skipped by statistics, and by conditions on the columns of the feed. The three files that the overwrite
    removed are read by most queries, because their `remove` actions have no statistics.
    """
    path = tmp_path / "table"
    for first in (0, 10, 20):
        rows = pa.table(
            {"id": range(first, first + 10), "text": [f"row {n}" for n in range(first, first + 10)]}
        )
        deltalog.write_deltalake(
            path,
            rows,
            mode="append",
            configuration={"delta.enableChangeDataFeed": "true"} if first == 0 else None,
        )
    deltalog.write_deltalake(path, pa.table({"id": [40], "text": ["row 40"]}), mode="overwrite")
    frame = (
        spark.read.format("deltalog")
        .option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .load(str(path))
    )
    everything = frame.collect()
    for condition, is_wanted, files in (
        ("id BETWEEN 12 AND 14", lambda row: 12 <= row.id <= 14, 1 + 3),
        ("id = 40", lambda row: row.id == 40, 1 + 3),
        ("id > 100", lambda row: False, 0 + 3),
        ("_change_type = 'delete'", lambda row: row._change_type == "delete", 3),
        ("_change_type = 'insert' AND id < 15", lambda row: row._change_type == "insert" and row.id < 15, 2),
        ("_commit_version = 1", lambda row: row._commit_version == 1, 1),
        ("_commit_version >= 2 AND id >= 20", lambda row: row._commit_version >= 2 and row.id >= 20, 2 + 3),
        ("length(text) = 5", lambda row: len(row.text) == 5, 7),
    ):
        some = frame.where(condition)
        assert sorted(map(str, some.collect())) == sorted(str(row) for row in everything if is_wanted(row)), (
            condition
        )
        scan: Any = some._jdf.queryExecution().sparkPlan().collectLeaves().head()
        assert f"{files} of 7 files" in scan.relation().location().toString(), condition


def test_times_between_two_milliseconds_select_the_versions_that_python_selects(
    spark: SparkSession, path: str
) -> None:
    """Both the native and the portable reader round a start time up and an end time down to milliseconds."""
    schema = pa.schema([("id", pa.int64())])
    deltalog.DeltaTable.create(path, schema, configuration={"delta.enableChangeDataFeed": "true"})
    commits = [datetime.datetime(1971, 1, day, tzinfo=datetime.timezone.utc) for day in (1, 2, 3)]
    for version, commit in enumerate(commits):
        if version > 0:
            deltalog.write_deltalake(path, pa.table({"id": [version]}), mode="append")
        os.utime(Path(path, "_delta_log", f"{version:020}.json"), times=(commit.timestamp(),) * 2)
    micro = datetime.timedelta(microseconds=1)
    for start, end, wanted in (
        (commits[1], None, (1, 2)),
        (commits[1] + micro, None, (2, 2)),
        (commits[0], commits[2], (0, 2)),
        (commits[0], commits[2] - micro, (0, 1)),
    ):
        options = {"startingTimestamp": start.isoformat()}
        if end is not None:
            options["endingTimestamp"] = end.isoformat()
        ids = list(range(max(wanted[0], 1), wanted[1] + 1))
        python = deltalog.DeltaTable(path).load_cdf(starting_timestamp=start, ending_timestamp=end)
        assert sorted(pa.table(python)["id"].to_pylist()) == ids
        assert sorted(changes(spark, path, **options)["id"].to_pylist()) == ids
        portable = DeltalogDataSource({"path": path, "readChangeFeed": "true", **options})
        portable.schema()
        assert portable._versions == wanted


def test_the_option_for_the_feed_is_true_or_false(spark: SparkSession, path: str) -> None:
    """The option that requests the feed must be true or false. With any other value, the query would silently return
    the rows of the table.
    """
    spark.range(3).write.format("deltalog").option("delta.enableChangeDataFeed", "true").save(path)
    table = f"deltalog.`{path}`"
    for name in ("readChangeFeed", "READCHANGEDATA", "rowIds"):
        for value in ("yes", "1", ""):
            with pytest.raises(deltalog.InvalidArgumentError, match=r"must be true or false"):
                spark.read.format("deltalog").option(name, value).load(path).collect()
            with pytest.raises(deltalog.InvalidArgumentError, match=r"must be true or false"):
                spark.read.option(name, value).table(table).collect()
        assert spark.read.format("deltalog").option(name, " False ").load(path).count() == 3
    with pytest.raises(
        deltalog.InvalidArgumentError, match="the option startingVersion needs readChangeFeed"
    ):
        spark.read.format("deltalog").option("startingversion", 0).load(path)


def test_functions_of_sql(spark: SparkSession, path: str) -> None:
    spark.sql(
        f"CREATE TABLE fed (a INT) USING deltalog LOCATION '{path}' TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    try:
        spark.sql("INSERT INTO fed VALUES (1)")
        spark.sql("UPDATE fed SET a = 2")
        kinds = ["insert", "update_postimage", "update_preimage"]

        def found(call: str) -> list[str]:
            return sorted(row._change_type for row in spark.sql(f"SELECT * FROM {call} AS f").collect())

        assert found("table_changes('fed', 0)") == kinds
        assert found("table_changes('default.fed', 0, 1 + 0)") == kinds[:1]
        assert found(f"table_changes_by_path('{path}', 2)") == kinds[1:]
        assert found("table_changes('fed', '2000-01-01', current_timestamp())") == kinds
        by_parameter = spark.sql("SELECT a FROM table_changes(:t, :from, 1)", {"t": "fed", "from": 1})
        assert [row.a for row in by_parameter.collect()] == [1]
        for call, wrong in {
            "table_changes('fed')": "pass a table, a start",
            "table_changes('fed', NULL)": "starting bound is NULL",
            "table_changes('nowhere', 0)": "nowhere",
        }.items():
            with pytest.raises(Exception, match=wrong):
                spark.sql(f"SELECT * FROM {call}").collect()
    finally:
        spark.sql("DROP TABLE fed")
