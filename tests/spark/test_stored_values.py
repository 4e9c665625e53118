"""Values whose type differs from the type of their column are cast or refused, in each way of writing them."""

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import deltalog.tables
from deltalog import DeltaTable, InvalidArgumentError

SCHEMA = "k INT, i INT, d DATE, t TIMESTAMP, s STRUCT<x: INT>, a ARRAY<INT>, n INT NOT NULL"
POLICY = "spark.sql.storeAssignmentPolicy"


def verb(spark: SparkSession, table: str) -> deltalog.tables.DeltaTable:
    return deltalog.tables.DeltaTable.forPath(spark, table.split("`")[1])


def path(table: str) -> str:
    return table.split("`")[1]


def row(column: str, value: str) -> str:
    """Returns a query for one row, in which a column has the given value."""
    columns = ("k", "i", "d", "t", "s", "a", "n")
    known = {"k": "1", "n": "1", column: value}
    return "SELECT " + ", ".join(f"{known.get(name, 'NULL')} AS {name}" for name in columns)


def insert(text: str) -> Callable[[SparkSession, str, str, str], object]:
    return lambda spark, table, column, value: spark.sql(
        text.format(t=table, column=column, value=value, row=row(column, value))
    )


WRITES: dict[str, Callable[[SparkSession, str, str, str], object]] = {
    "INSERT": insert("INSERT INTO {t} {row}"),
    "INSERT of some columns": insert("INSERT INTO {t} (n, {column}) VALUES (1, {value})"),
    "BY NAME": insert("INSERT INTO {t} BY NAME SELECT 1 AS n, {value} AS {column}"),
    "OVERWRITE": insert("INSERT OVERWRITE {t} {row}"),
    "UPDATE": insert("UPDATE {t} SET {column} = {value}"),
    "MERGE": insert("MERGE INTO {t} t USING ({row}) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *"),
    "MERGE that inserts": insert(
        "MERGE INTO {t} t USING ({row}) s ON t.k = s.k + 1 WHEN NOT MATCHED THEN INSERT *"
    ),
    "update": lambda spark, table, column, value: verb(spark, table).update(set={column: value}),
    "save": lambda spark, table, column, value: (
        spark.sql(row(column, value)).write.format("deltalog").mode("append").save(path(table))
    ),
    "writeTo": lambda spark, table, column, value: spark.sql(row(column, value)).writeTo(table).append(),
    "insertInto": lambda spark, table, column, value: spark.sql(row(column, value)).write.insertInto(table),
}


@pytest.fixture
def table(spark: SparkSession, path: str) -> str:
    spark.sql(f"CREATE TABLE deltalog.`{path}` ({SCHEMA}) USING deltalog")
    spark.sql(f"INSERT INTO deltalog.`{path}` (k, n) VALUES (1, 1)")
    return f"deltalog.`{path}`"


@pytest.fixture(scope="module", autouse=True)
def small_plans(spark: SparkSession) -> Iterator[None]:
    """Turns off code generation, because for so few rows compiling code takes longer than running it."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


def stored(table: str, column: str) -> list[Any]:
    values = DeltaTable(path(table)).to_pyarrow_table(columns=[column]).to_pylist()
    return [value[column] for value in values if value[column] is not None]


@pytest.mark.parametrize("write", WRITES)
def test_text_is_cast_by_the_rules_of_ansi(spark: SparkSession, table: str, write: str) -> None:
    """Strings are cast by the rules of ANSI mode, as in the JVM connector."""
    WRITES[write](spark, table, "i", "'12'")
    assert stored(table, "i") == [12]
    version = DeltaTable(path(table)).version()
    with pytest.raises(Exception, match=r"CAST_INVALID_INPUT.*'1x'"):
        WRITES[write](spark, table, "i", "'1x'")
    assert DeltaTable(path(table)).version() == version


@pytest.mark.newest
@pytest.mark.parametrize("write", ["INSERT", "BY NAME", "UPDATE", "save"])
def test_what_sql_casts_on_request_is_cast(spark: SparkSession, table: str, write: str) -> None:
    for column, value, expected in (
        ("d", "'2024-01-02'", datetime.date(2024, 1, 2)),
        ("i", "true", 1),
        ("s", "named_struct('x', '7')", {"x": 7}),
        ("a", "array('7', NULL)", [7, None]),
    ):
        WRITES[write](spark, table, column, value)
        assert stored(table, column) == [expected]
    WRITES[write](spark, table, "t", "'2024-01-02 03:04:05'")
    # The string is a time in the session's time zone, New York.
    assert stored(table, "t") == [datetime.datetime(2024, 1, 2, 8, 4, 5, tzinfo=datetime.UTC)]


@pytest.mark.newest
@pytest.mark.parametrize("write", ["INSERT", "UPDATE", "MERGE", "save"])
def test_what_sql_does_not_cast_is_refused(spark: SparkSession, table: str, write: str) -> None:
    with pytest.raises(AnalysisException, match=r"(?i)cannot (safely )?cast"):
        WRITES[write](spark, table, "i", "DATE '2024-01-02'")
    assert stored(table, "i") == []


@pytest.mark.newest
@pytest.mark.parametrize("write", ["INSERT", "UPDATE", "MERGE", "save"])
def test_the_policy_strict_casts_no_text(spark: SparkSession, table: str, write: str) -> None:
    """With the policy STRICT, strings are not cast, and the error names the table and the column."""
    spark.conf.set(POLICY, "STRICT")
    try:
        with pytest.raises(AnalysisException) as caught:
            WRITES[write](spark, table, "i", "'12'")
    finally:
        spark.conf.unset(POLICY)
    assert "`i`" in str(caught.value)
    assert path(table).rpartition("/")[0] in str(caught.value)


@pytest.mark.parametrize("write", ["INSERT", "UPDATE", "MERGE", "MERGE that inserts", "update", "save"])
def test_the_policy_legacy_is_refused(spark: SparkSession, table: str, write: str) -> None:
    """The policy LEGACY is refused, because it would change values that do not fit."""
    spark.conf.set(POLICY, "LEGACY")
    try:
        for value in ("3000000000", "'abc'"):
            with pytest.raises(InvalidArgumentError, match="LEGACY, which changes values"):
                WRITES[write](spark, table, "i", value)
        spark.sql(f"DELETE FROM {table} WHERE k = 1")
    finally:
        spark.conf.unset(POLICY)
    assert stored(table, "k") == []


@pytest.mark.parametrize("write", ["INSERT", "UPDATE", "MERGE", "MERGE that inserts", "update", "save"])
@pytest.mark.parametrize("value", ["nullif({k}, 1)", "CAST(nullif({k}, 1) AS BIGINT)"])
def test_null_in_a_column_that_is_not_null_names_it(
    spark: SparkSession, table: str, write: str, value: str
) -> None:
    of_table = write in ("UPDATE", "update")
    with pytest.raises(Exception, match=r"NOT_NULL_ASSERT_VIOLATION[\s\S]*\bn\b\s"):
        WRITES[write](spark, table, "n", value.format(k="k" if of_table else "1"))
