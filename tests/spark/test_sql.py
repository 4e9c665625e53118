"""SQL statements on tables by name and by path. Unsupported statements are refused and change nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from deltalog import NotATableError, UnsupportedFeatureError
from deltalog.spark.errors import DeltaError
from tests.spark.session_kinds import without_us


def rows(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=str)


def everything_under(path: str) -> list[Path]:
    return sorted(Path(path).rglob("*"))


@pytest.fixture
def sql_table(spark: SparkSession, path: str) -> Iterator[str]:
    spark.sql(
        "CREATE TABLE t (a INT NOT NULL, v STRING COMMENT 'what', p DATE) USING deltalog PARTITIONED BY (p) "
        f"LOCATION '{path}'"
    )
    yield path
    spark.sql("DROP TABLE IF EXISTS t")


def test_tables_are_created_and_inserted_into(spark: SparkSession, sql_table: str) -> None:
    spark.sql("INSERT INTO t VALUES (1, 'x', DATE '2024-01-01'), (2, NULL, NULL)")
    spark.sql("INSERT INTO t (p, a) SELECT DATE '2024-02-02', 3")
    spark.sql(f"INSERT INTO deltalog.`{sql_table}` SELECT a + 10, v, p FROM t")
    found = rows(spark, "SELECT a, v, string(p) FROM t")
    half = [(1, "x", "2024-01-01"), (2, None, None), (3, None, "2024-02-02")]
    assert found == sorted(half + [(a + 10, v, p) for a, v, p in half], key=str)
    assert deltalake.DeltaTable(sql_table).version() == 3
    assert deltalake.DeltaTable(sql_table).to_pyarrow_table().num_rows == 6
    fields = {field.name: field for field in deltalake.DeltaTable(sql_table).schema().fields}
    assert not fields["a"].nullable
    assert fields["v"].metadata == {"comment": "what"}


def test_names_refer_to_the_newest_version(spark: SparkSession, sql_table: str) -> None:
    assert rows(spark, "SELECT * FROM t") == []
    frame = spark.table("t")
    new = pa.table({"a": pa.array([1], pa.int32()), "v": ["x"], "p": pa.array([0], pa.date32())})
    deltalake.write_deltalake(
        sql_table,
        new.cast(pa.schema([pa.field("a", pa.int32(), False), ("v", pa.string()), ("p", pa.date32())])),
        mode="append",
    )
    assert rows(spark, "SELECT a FROM t") == [(1,)]
    assert frame.count() == 0
    assert rows(spark, "SELECT (SELECT count(*) FROM t VERSION AS OF 0), (SELECT count(*) FROM t)") == [
        (0, 1)
    ]


def test_insert_overwrite_may_read_the_same_table(spark: SparkSession, sql_table: str) -> None:
    spark.sql("INSERT INTO t VALUES (1, 'x', NULL), (2, 'y', NULL)")
    spark.sql("INSERT OVERWRITE t SELECT * FROM t WHERE a = 2")
    assert rows(spark, "SELECT a, v FROM t") == [(2, "y")]


def test_null_is_refused_in_not_null_columns(spark: SparkSession, sql_table: str) -> None:
    with pytest.raises(PySparkException, match=r"(?i)null"):
        spark.sql("INSERT INTO t VALUES (NULL, 'x', NULL)")
    assert deltalake.DeltaTable(sql_table).version() == 0


def test_create_table_registers_an_existing_table(spark: SparkSession, path: str) -> None:
    deltalake.write_deltalake(path, pa.table({"p": ["x"], "a": [1]}), partition_by=["p"])
    spark.sql(f"CREATE TABLE existing USING deltalog LOCATION '{path}'")
    try:
        assert spark.table("existing").columns == ["p", "a"]
        spark.sql("INSERT INTO existing VALUES ('y', 2)")
        assert rows(spark, "SELECT * FROM existing") == [("x", 1), ("y", 2)]
        with pytest.raises((DeltaError, AnalysisException), match="exist"):
            spark.sql(f"CREATE TABLE existing USING deltalog LOCATION '{path}'")
        spark.sql(f"CREATE TABLE IF NOT EXISTS existing USING deltalog LOCATION '{path}'")
        with pytest.raises(DeltaError, match="schema"):
            spark.sql(f"CREATE TABLE other (z INT) USING deltalog LOCATION '{path}'")
        assert not spark.catalog.tableExists("other")
    finally:
        spark.sql("DROP TABLE existing")
    assert deltalake.DeltaTable(path).version() == 1


def test_create_table_without_columns_requires_a_table(spark: SparkSession, path: str) -> None:
    with pytest.raises(NotATableError, match="no columns"):
        spark.sql(f"CREATE TABLE nothing USING deltalog LOCATION '{path}'")
    assert not spark.catalog.tableExists("nothing")


def test_managed_tables_are_created_written_and_dropped(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE made USING deltalog PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 60 days') AS SELECT 1 AS a, 'x' AS p"
    )
    try:
        location = (
            spark.sql("DESCRIBE EXTENDED made")
            .where("col_name = 'Location'")
            .collect()[0]
            .data_type.removeprefix("file:")
        )
        assert deltalake.DeltaTable(location).metadata().configuration == {
            "delta.logRetentionDuration": "interval 60 days"
        }
        spark.sql("SELECT 2 AS a, 'y' AS p").write.insertInto("made")
        spark.sql("SELECT 3 AS a, 'z' AS p").write.format("deltalog").mode("append").partitionBy(
            "p"
        ).saveAsTable("made")
        assert rows(spark, "SELECT * FROM made") == [(1, "x"), (2, "y"), (3, "z")]
    finally:
        spark.sql("DROP TABLE made")
    assert not Path(location).exists()


def test_writer_apis_accept_names(spark: SparkSession) -> None:
    try:
        spark.range(3).write.format("deltalog").saveAsTable("by_name")
        spark.range(2).write.format("deltalog").mode("append").saveAsTable("by_name")
        assert spark.table("by_name").count() == 5
        spark.range(1).write.format("deltalog").mode("overwrite").saveAsTable("by_name")
        assert spark.table("by_name").count() == 1
        spark.range(4).writeTo("by_name_2").using("deltalog").create()
        assert spark.table("by_name_2").count() == 4
    finally:
        spark.sql("DROP TABLE IF EXISTS by_name")
        spark.sql("DROP TABLE IF EXISTS by_name_2")


REFUSED = [
    "ALTER TABLE t DROP COLUMN v",
    "ALTER TABLE t SET LOCATION '{path} 2'",
    "ALTER TABLE t REPLACE COLUMNS (z INT)",
    "ALTER TABLE t ADD PARTITION (p = '2024-01-01')",
    "ALTER TABLE t ADD PARTITION (p = '2024-01-02')",
    "ALTER TABLE t DROP PARTITION (p = '2024-01-01')",
    "ALTER TABLE t PARTITION (p = '2024-01-01') RENAME TO PARTITION (p = '2024-01-02')",
    "TRUNCATE TABLE t PARTITION (p = '2024-01-01')",
    "MSCK REPAIR TABLE t",
    "INSERT INTO t SELECT 1, 'x'",
    "INSERT INTO t SELECT 'one', 'x', NULL",
]

REFUSAL = (
    "(?i)not supported|unsupported|does not support|there is no Delta table|not clear whether|"
    "NOT_ENOUGH_DATA_COLUMNS|CANNOT_SAFELY_CAST|CAST_INVALID_INPUT|PARTITIONS_ALREADY_EXIST|"
    "come and go with their rows"
)


def test_unsupported_statements_are_refused_and_change_nothing(spark: SparkSession, sql_table: str) -> None:
    spark.sql("INSERT INTO t VALUES (1, 'x', DATE '2024-01-01')")
    before = everything_under(sql_table)
    for statement in REFUSED:
        with pytest.raises(PySparkException, match=REFUSAL):
            spark.sql(statement.format(path=sql_table)).collect()
        assert everything_under(sql_table) == before, statement
    assert rows(spark, "SELECT a, v, string(p) FROM t") == [(1, "x", "2024-01-01")]


NAMED = {
    "ALTER TABLE t ALTER COLUMN a COMMENT 'x', v COMMENT 'y'": "ALTER TABLE",
}


def test_refusals_name_deltalog_and_the_statement(spark: SparkSession, sql_table: str) -> None:
    for statement, name in NAMED.items():
        with pytest.raises(DeltaError, match=f"{name}.* not supported yet by deltalog"):
            spark.sql(statement)


PAST_THE_LOG = [
    "INSERT INTO t VALUES (9, 'x', NULL)",
    "INSERT OVERWRITE t VALUES (9, 'x', NULL)",
    "INSERT INTO t PARTITION (p = '2024-01-01') SELECT 1, 'x'",
    "INSERT OVERWRITE t PARTITION (p = '2024-01-01') SELECT 1, 'x'",
    "TRUNCATE TABLE t",
    "DELETE FROM t WHERE a = 1",
    "UPDATE t SET a = 2",
    "MERGE INTO t USING (SELECT 1 AS k) s ON t.a = s.k WHEN MATCHED THEN DELETE",
]


def test_sessions_without_us_cannot_bypass_the_log(spark: SparkSession, sql_table: str) -> None:
    spark.sql("INSERT INTO t VALUES (1, 'x', DATE '2024-01-01')")
    before = everything_under(sql_table)
    other = without_us(spark)
    for statement in PAST_THE_LOG:
        with pytest.raises(UnsupportedFeatureError, match=r"call deltalog\.spark\.enable"):
            other.sql(statement)
        assert everything_under(sql_table) == before, statement


def test_an_error_of_a_script_is_sparks_own(spark: SparkSession) -> None:
    """An error in a SQL script is raised as Spark's own error. It is a checked exception that the interface of parsers
    does not declare.
    """
    spark.conf.set("spark.sql.scripting.enabled", "true")
    try:
        with pytest.raises(Exception, match="INVALID_VARIABLE_DECLARATION") as caught:
            spark.sql("BEGIN SELECT 1; DECLARE x INT; END")
    finally:
        spark.conf.unset("spark.sql.scripting.enabled")
    assert "UndeclaredThrowableException" not in str(caught.value)
