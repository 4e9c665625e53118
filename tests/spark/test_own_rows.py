"""Writes whose rows are read from the same table, while other commits are made.

The source calls a Python function. Its first call comes after the statement has chosen its version, and commits
another change.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from deltalog import CommitConflictError, DeltaTable
from tests.spark.overtaken import (
    Change,
    append_q,
    append_r,
    created,
    delete_q,
    insert_q,
    last,
    overtaken,
    rows,
    update_q,
)

LEVELS = ("WriteSerializable", "Serializable")


def q_as_p(spark: SparkSession, path: str) -> DataFrame:
    """Returns the rows of partition q, with p as their partition."""
    read = spark.read.format("deltalog").load(path)
    return read.where("part = 'q'").selectExpr("'p' AS part", "hook(value) AS value")


def by_sql(text: str) -> Callable[[SparkSession, str], object]:
    return lambda spark, path: spark.sql(text.format(t=f"deltalog.`{path}`")).collect()


def save(mode: str, **options: str) -> Callable[[SparkSession, str], object]:
    return lambda spark, path: (
        q_as_p(spark, path).write.format("deltalog").options(**options).mode(mode).save(path)
    )


APPENDS: dict[str, Callable[[SparkSession, str], object]] = {
    "INSERT": by_sql("INSERT INTO {t} SELECT 'p', hook(value) FROM {t} WHERE part = 'q'"),
    "INSERT of an aggregate": by_sql(
        "INSERT INTO {t} SELECT 'p', hook(sum(value)) FROM {t} WHERE part = 'q'"
    ),
    "INSERT with a subquery": by_sql(
        "INSERT INTO {t} SELECT 'p', (SELECT hook(max(value)) FROM {t} WHERE part = 'q') FROM range(1)"
    ),
    "INSERT of what is not there": by_sql(
        "INSERT INTO {t} SELECT part, hook(value) FROM VALUES ('p', 5L) s(part, value) "
        "WHERE NOT EXISTS (SELECT * FROM {t} x WHERE x.value = s.value AND x.part = 'q')"
    ),
    "save": save("append"),
    "writeTo": lambda spark, path: q_as_p(spark, path).writeTo(f"deltalog.`{path}`").append(),
}
OVERWRITES: dict[str, Callable[[SparkSession, str], object]] = {
    "REPLACE WHERE": by_sql(
        "INSERT INTO {t} REPLACE WHERE part = 'p' SELECT 'p' AS part, hook(value) AS value FROM {t} WHERE part = 'q'"
    ),
    "INSERT OVERWRITE": by_sql(
        "INSERT OVERWRITE {t} SELECT 'p' AS part, hook(value) AS value FROM {t} WHERE part = 'q'"
    ),
    "PARTITION": by_sql(
        "INSERT OVERWRITE {t} PARTITION (part = 'p') SELECT hook(value) AS value FROM {t} WHERE part = 'q'"
    ),
    "replaceWhere": save("overwrite", replaceWhere="part = 'p'"),
    "dynamic": save("overwrite", partitionOverwriteMode="dynamic"),
    "overwritePartitions": lambda spark, path: (
        q_as_p(spark, path).writeTo(f"deltalog.`{path}`").overwritePartitions()
    ),
    "overwrite": lambda spark, path: (
        q_as_p(spark, path).writeTo(f"deltalog.`{path}`").overwrite(sf.expr("part = 'p'"))
    ),
}
WRITES = {**APPENDS, **OVERWRITES}


@pytest.fixture(autouse=True)
def dynamic(spark: SparkSession) -> Any:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


@pytest.mark.parametrize("write", WRITES)
def test_changes_of_what_was_read_are_conflicts(spark: SparkSession, path: str, write: str) -> None:
    created(path)
    with (
        overtaken(spark, path, update_q),
        pytest.raises(CommitConflictError, match="repeat the write") as caught,
    ):
        WRITES[write](spark, path)
    assert caught.value.reason in ("concurrent_append", "concurrent_delete_read")
    assert rows(path) == [("p", 1), ("q", 12)]
    WRITES[write](spark, path)
    assert DeltaTable(path).version() == 2
    assert not last(path)["isBlindAppend"]


@pytest.mark.parametrize("write", ["INSERT", "REPLACE WHERE"])
@pytest.mark.parametrize("change", [delete_q, insert_q], ids=lambda change: change.__name__)
def test_deletes_and_inserts_that_have_read_are_conflicts(
    spark: SparkSession, path: str, write: str, change: Change
) -> None:
    created(path)
    with overtaken(spark, path, change), pytest.raises(CommitConflictError) as caught:
        WRITES[write](spark, path)
    expected = "concurrent_delete_read" if change is delete_q else "concurrent_append"
    assert caught.value.reason == expected


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("level", LEVELS)
def test_blind_appends_are_conflicts_as_the_isolation_level_has_it(
    spark: SparkSession, path: str, write: str, level: str
) -> None:
    """Under `WriteSerializable`, a blind append is not a conflict, because it may be ordered after the statement, as
    in the JVM connector.
    """
    created(path, level)
    with overtaken(spark, path, append_q):
        if level == "Serializable":
            with pytest.raises(CommitConflictError) as caught:
                WRITES[write](spark, path)
            assert caught.value.reason == "concurrent_append"
            assert rows(path) == [("p", 1), ("q", 2), ("q", 9)]
        else:
            WRITES[write](spark, path)
            assert len(rows(path)) == (4 if write in APPENDS else 3)
            assert not last(path)["isBlindAppend"]


@pytest.mark.parametrize("write", WRITES)
def test_rows_that_were_not_read_do_not_matter(spark: SparkSession, path: str, write: str) -> None:
    """Changes of rows that the statement has not read are no conflict. The filters in the statement's plan show which
    rows it has read.
    """
    created(path, "Serializable")
    with overtaken(spark, path, append_r):
        WRITES[write](spark, path)
    assert ("r", 9) in rows(path)
    assert DeltaTable(path).version() == 2


def test_rows_are_inserted_once(spark: SparkSession, path: str) -> None:
    """If two statements insert missing rows at the same time, no row is inserted twice."""
    table = created(path)
    statement = (
        "INSERT INTO {t} SELECT s.part, {value} FROM VALUES ('p', 1L), ('r', 3L) s(part, value) "
        "LEFT ANTI JOIN {t} t ON t.value = s.value"
    )
    other = spark.newSession()

    def again(_: str) -> None:
        other.sql(statement.format(t=table, value="s.value")).collect()

    with overtaken(spark, path, again), pytest.raises(CommitConflictError) as caught:
        spark.sql(statement.format(t=table, value="hook(s.value)")).collect()
    assert caught.value.reason == "concurrent_append"
    assert rows(path) == [("p", 1), ("q", 2), ("r", 3)]
    assert last(path)["isBlindAppend"] is False
    assert last(path)["readVersion"] == 0


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} REPLACE WHERE part = '{to}' SELECT '{to}', {value} AS value FROM {t} WHERE part = '{of}'",
        "INSERT OVERWRITE {t} SELECT '{to}', {value} AS value FROM {t} WHERE part = '{of}'",
        "INSERT OVERWRITE {t} PARTITION (part = '{to}') SELECT {value} AS value FROM {t} WHERE part = '{of}'",
    ],
    ids=["REPLACE WHERE", "INSERT OVERWRITE", "PARTITION"],
)
@pytest.mark.parametrize("level", LEVELS)
def test_partitions_are_not_swapped(spark: SparkSession, path: str, statement: str, level: str) -> None:
    """One statement replaces partition p with the content of q, and the other replaces q with the content of p. If one
    ran after the other, both partitions would be equal at the end, so one of them must conflict.
    """
    table = created(path, level)
    other = spark.newSession()
    other.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    q_of_p = statement.format(t=table, to="q", of="p", value="value")
    with overtaken(spark, path, lambda _: other.sql(q_of_p).collect()), pytest.raises(CommitConflictError):
        spark.sql(statement.format(t=table, to="p", of="q", value="hook(value)")).collect()
    assert rows(path) == [("p", 1), ("q", 1)]


def test_partitions_that_are_computed_from_themselves_are_independent(spark: SparkSession, path: str) -> None:
    table = created(path, "Serializable")
    statement = "INSERT OVERWRITE {t} PARTITION (part = '{p}') SELECT {value} + 1 AS value FROM {t} WHERE part = '{p}'"
    other = spark.newSession()
    other.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    with overtaken(
        spark, path, lambda _: other.sql(statement.format(t=table, p="q", value="value")).collect()
    ):
        spark.sql(statement.format(t=table, p="p", value="hook(value)")).collect()
    assert rows(path) == [("p", 2), ("q", 3)]


@pytest.mark.parametrize("level", LEVELS)
def test_appends_that_read_other_tables_are_blind(
    spark: SparkSession, path: str, tmp_path: Path, level: str
) -> None:
    """An append that reads only other tables, or explicitly requested versions of the same table, is a blind append."""
    table = created(path, level)
    other = str(tmp_path / "other")
    source = created(other)
    frame = spark.read.format("deltalog").load(other)
    old = spark.read.format("deltalog").option("versionAsOf", 0).load(path)
    hooked = ("part", "hook(value) AS value")
    appends: list[Callable[[], object]] = [
        lambda: spark.sql(f"INSERT INTO {table} SELECT part, hook(value) FROM {source}").collect(),
        lambda: spark.sql(
            f"INSERT INTO {table} SELECT part, hook(value) FROM {table} VERSION AS OF 0"
        ).collect(),
        lambda: spark.sql(f"INSERT INTO {table} SELECT 'x', hook(id) FROM range(1)").collect(),
        lambda: frame.selectExpr(*hooked).write.format("deltalog").mode("append").save(path),
        lambda: old.selectExpr(*hooked).write.format("deltalog").mode("append").save(path),
    ]
    for append in appends:
        version = DeltaTable(path).version()
        with overtaken(spark, path, update_q):
            append()
        assert last(path)["version"] == version + 2
        assert last(path)["isBlindAppend"] is True


def test_appends_of_old_frames_depend_on_the_version_that_they_show(spark: SparkSession, path: str) -> None:
    created(path)
    frame = spark.read.format("deltalog").load(path).where("part = 'q'")
    frame.write.format("deltalog").mode("append").save(path)
    assert last(path)["readVersion"] == 0
    update_q(path)
    with pytest.raises(CommitConflictError) as caught:
        frame.write.format("deltalog").mode("append").save(path)
    assert caught.value.reason in ("concurrent_append", "concurrent_delete_read")
    assert rows(path) == [("p", 1), ("q", 12), ("q", 12)]


def test_merges_read_only_rows_that_the_filter_of_their_source_selects(
    spark: SparkSession, path: str
) -> None:
    table = created(path, "Serializable")
    merge = (
        f"MERGE INTO {table} t USING (SELECT 'p' AS part, hook(value) AS v FROM {table} WHERE part = 'q') s "
        "ON t.part = s.part AND t.part = 'p' WHEN MATCHED THEN UPDATE SET value = s.v"
    )
    with overtaken(spark, path, append_r):
        spark.sql(merge).collect()
    assert rows(path) == [("p", 2), ("q", 2), ("r", 9)]
    for change in (update_q, append_q):
        with overtaken(spark, path, change), pytest.raises(CommitConflictError):
            spark.sql(merge).collect()


# Queries that read the table, with whether deltalog can tell that they read only partition q.
QUERIES = {
    "filter": ("{t} WHERE part = 'q'", True),
    "inner": ("{t} JOIN d ON t.part = d.part AND t.part = 'q'", True),
    "inner, above": ("{t} JOIN d ON t.part = d.part WHERE t.part = 'q'", True),
    "left": ("{t} LEFT JOIN d ON t.part = d.part WHERE t.part = 'q'", True),
    "left, its condition": ("{t} LEFT JOIN d ON t.part = d.part AND t.part = 'q'", False),
    "right side of a left join": ("d LEFT JOIN {t} ON t.part = d.part AND t.part = 'q'", True),
    "right side of a left join, above": ("d LEFT JOIN {t} ON t.part = d.part WHERE t.part = 'q'", False),
    "right": ("d RIGHT JOIN {t} ON t.part = d.part WHERE t.part = 'q'", True),
    "full": ("{t} FULL JOIN d ON t.part = d.part WHERE t.part = 'q'", False),
    "semi": ("{t} LEFT SEMI JOIN d ON t.part = d.part WHERE t.part = 'q'", True),
    "anti": ("d LEFT ANTI JOIN {t} ON t.part = d.part AND t.part = 'q'", True),
    "anti, the side that stays": ("{t} LEFT ANTI JOIN d ON t.part = d.part AND t.part = 'q'", False),
    "limit": ("(SELECT * FROM {t} LIMIT 5) WHERE part = 'q'", False),
    "window": ("(SELECT part, row_number() OVER (ORDER BY part) FROM {t}) WHERE part = 'q'", False),
    "aggregate": ("(SELECT part, max(value) FROM {t} GROUP BY part) WHERE part = 'q'", False),
    "union": ("(SELECT part FROM {t} WHERE part = 'q' UNION ALL SELECT part FROM d)", True),
    "case of the name": ("{t} WHERE T.PART = 'q'", True),
    "function in Python": ("{t} WHERE same(part) = 'q'", False),
    "time of day": ("{t} WHERE part < CAST(current_date() AS STRING)", False),
    "random": ("{t} WHERE value > rand() AND part = 'q'", True),
    "metadata": ("{t} WHERE _metadata.file_name != 'x' AND part = 'q'", True),
    "correlated": ("d WHERE EXISTS (SELECT * FROM {t} WHERE t.value = d.value AND t.part = 'q')", True),
    "statistics": ("{t} WHERE value < 5", True),
}


@pytest.mark.newest
@pytest.mark.parametrize("query", QUERIES)
def test_which_rows_were_read(spark: SparkSession, path: str, query: str) -> None:
    """Rows that cannot change the result of a query do not count as read."""
    table = created(path, "Serializable")
    spark.createDataFrame([("q", 2)], "part string, value long").createOrReplaceTempView("d")
    spark.udf.register("same", sf.udf(lambda value: value, "string"))
    text, is_known = QUERIES[query]
    try:
        found = spark.sql(f"SELECT 'x' AS part, count(*) AS value FROM {text.format(t=table + ' t')}")
        append_r(path)
        write = found.write.format("deltalog").mode("append")
        if is_known:
            write.save(path)
            assert last(path)["isBlindAppend"] is False
            return
        with pytest.raises(CommitConflictError):
            write.save(path)
    finally:
        spark.catalog.dropTempView("d")
