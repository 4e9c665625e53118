"""Writes that add columns, by the option `mergeSchema`, by a setting of the session, or by WITH SCHEMA EVOLUTION."""

from collections.abc import Callable, Iterator

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
KNOWS_EVOLUTION = pyspark.__version__ >= "4.2"
HAS_C = [(1, 1, None), (2, None, 3)]


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE TABLE grows (a INT, b INT) USING deltalog")
    spark.sql("INSERT INTO grows VALUES (1, 1)")
    yield "grows"
    spark.sql("DROP TABLE grows")


@pytest.fixture
def auto_merge(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(AUTO_MERGE, "true")
    yield
    spark.conf.unset(AUTO_MERGE)


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.table(table).collect()), key=str)


STATEMENTS = {
    "by position": ("INTO grows SELECT 2 x, 2 y, 3 c", [(1, 1, None), (2, 2, 3)]),
    "by name": ("INTO grows BY NAME SELECT 3 c, 2 a", HAS_C),
    "overwrite": ("OVERWRITE grows BY NAME SELECT 3 c, 2 a", [(2, None, 3)]),
    "replace where": ("INTO grows REPLACE WHERE a = 1 SELECT 1 a, 2 b, 3 c", [(1, 2, 3)]),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_setting_lets_an_insert_add_columns(
    spark: SparkSession, table: str, auto_merge: None, name: str
) -> None:
    text, expected = STATEMENTS[name]
    spark.sql(f"INSERT {text}")
    assert rows(spark, table) == expected


@pytest.mark.skipif(not KNOWS_EVOLUTION, reason="the grammar has it since Spark 4.2")
@pytest.mark.parametrize("name", STATEMENTS)
def test_insert_with_schema_evolution_adds_columns(spark: SparkSession, table: str, name: str) -> None:
    text, expected = STATEMENTS[name]
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION {text}")
    assert rows(spark, table) == expected


WRITES: dict[str, Callable[[DataFrame, str], None]] = {
    "append": lambda data, value: data.writeTo("grows").option("mergeSchema", value).append(),
    "overwritePartitions": lambda data, value: (
        data.writeTo("grows").option("mergeSchema", value).overwritePartitions()
    ),
    "overwrite": lambda data, value: (
        data.writeTo("grows").option("mergeSchema", value).overwrite(sf.expr("a = 2"))
    ),
    "saveAsTable": lambda data, value: (
        data.write.format("deltalog").mode("append").option("mergeSchema", value).saveAsTable("grows")
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_option_lets_a_write_add_columns(spark: SparkSession, table: str, name: str) -> None:
    WRITES[name](spark.sql("SELECT 3 c, 2 a"), "true")
    assert rows(spark, table) == ([(2, None, 3)] if name == "overwritePartitions" else HAS_C)


@pytest.mark.parametrize("name", WRITES)
def test_the_option_has_precedence_over_the_setting(
    spark: SparkSession, table: str, auto_merge: None, name: str
) -> None:
    with pytest.raises(Exception, match="c"):
        WRITES[name](spark.sql("SELECT 3 c, 2 a"), "false")
    assert spark.table(table).columns == ["a", "b"]


def test_a_write_adds_no_columns_by_default(spark: SparkSession, table: str) -> None:
    with pytest.raises(pyspark.errors.AnalysisException):
        spark.sql("INSERT INTO grows SELECT 2, 2, 3")
    with pytest.raises(pyspark.errors.AnalysisException):
        spark.sql("SELECT 3 c, 2 a").writeTo(table).append()
    assert rows(spark, table) == [(1, 1)]


def test_explaining_an_insert_adds_nothing(spark: SparkSession, table: str, auto_merge: None) -> None:
    spark.sql("EXPLAIN INSERT INTO grows SELECT 2, 2, 3 c").collect()
    assert spark.table(table).columns == ["a", "b"]


def test_insert_into_and_fields_by_position(spark: SparkSession, auto_merge: None) -> None:
    spark.sql("CREATE TABLE nests (a INT, s STRUCT<p: INT, q: INT>) USING deltalog")
    try:
        data = spark.sql("SELECT 1, named_struct('x', 1, 'y', 2, 'z', 3), 4 AS d")
        data.write.insertInto("nests")
        [row] = spark.table("nests").collect()
        assert row.asDict(recursive=True) == {"a": 1, "s": {"p": 1, "q": 2, "z": 3}, "d": 4}
    finally:
        spark.sql("DROP TABLE nests")


def test_too_few_columns_stay_an_error(spark: SparkSession, table: str, auto_merge: None) -> None:
    with pytest.raises(pyspark.errors.AnalysisException, match="NOT_ENOUGH_DATA_COLUMNS"):
        spark.sql("INSERT INTO grows SELECT 1")
    spark.sql("INSERT INTO grows (b) SELECT 5")
    assert rows(spark, table) == [(1, 1), (None, 5)]


def test_a_table_that_is_not_there_is_named(spark: SparkSession, auto_merge: None) -> None:
    with pytest.raises(pyspark.errors.AnalysisException, match="nowhere"):
        spark.sql("SELECT 3 c, 2 a").writeTo("nowhere").append()


def test_a_struct_that_lacks_a_field_is_appended_with_null(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE lacks (a INT, s STRUCT<p: INT, q: INT>, l ARRAY<STRUCT<p: INT, q: INT>>) USING deltalog"
    )
    try:
        data = spark.sql("SELECT 1 a, named_struct('q', 2) s, array(named_struct('p', 3)) l")
        data.write.format("deltalog").mode("append").saveAsTable("lacks")
        data.writeTo("lacks").append()
        for row in spark.table("lacks").collect():
            assert row.asDict(recursive=True) == {
                "a": 1,
                "s": {"p": None, "q": 2},
                "l": [{"p": 3, "q": None}],
            }
        with pytest.raises(pyspark.errors.AnalysisException):
            spark.sql("SELECT 1 a, named_struct('other', 2) s").writeTo("lacks").append()
    finally:
        spark.sql("DROP TABLE lacks")


REPLACEMENTS = {
    "USING (a) SELECT * FROM VALUES (1, 7), (1, 8), (3, 9) AS v(a, b)": [(1, 7), (1, 8), (2, 2), (3, 9)],
    "USING (b) SELECT 5 AS a, 2 AS b": [(1, 1), (5, 2)],
    "USING (a) SELECT * FROM VALUES (CAST(NULL AS INT), 7) AS v(a, b)": [(1, 1), (2, 2), (None, 7)],
    "ON grows.a < s.b (SELECT 9 AS a, 2 AS b) AS s": [(2, 2), (9, 2)],
    "USING (a) SELECT a, b + 10 FROM grows WHERE a = 2": [(1, 1), (2, 12)],
}


@pytest.mark.skipif(not KNOWS_EVOLUTION, reason="the grammar has it since Spark 4.2")
@pytest.mark.parametrize("clause", REPLACEMENTS)
def test_insert_replaces_matching_rows(spark: SparkSession, table: str, clause: str) -> None:
    spark.sql("INSERT INTO grows VALUES (2, 2)")
    spark.sql(f"INSERT INTO grows REPLACE {clause}")
    assert rows(spark, table) == REPLACEMENTS[clause]
    assert spark.sql("DESCRIBE HISTORY grows LIMIT 1").collect()[0].version == 3


@pytest.mark.skipif(not KNOWS_EVOLUTION, reason="the grammar has it since Spark 4.2")
def test_insert_replaces_with_an_alias_by_name_and_new_columns(spark: SparkSession, table: str) -> None:
    spark.sql("INSERT INTO grows AS t REPLACE ON t.a = s.k (SELECT 1 AS k, 3 AS v) AS s")
    assert rows(spark, table) == [(1, 3)]
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO grows BY NAME REPLACE USING (a) SELECT 4 AS c, 1 AS a")
    assert rows(spark, table) == [(1, None, 4)]
    for wrong in ("USING (a) SELECT 1", "USING (a) SELECT 3 b, 1 a, 4 c", "USING (x) SELECT 1, 2, 3"):
        with pytest.raises(pyspark.errors.PySparkException):
            spark.sql(f"INSERT INTO grows REPLACE {wrong}")
    assert rows(spark, table) == [(1, None, 4)]
