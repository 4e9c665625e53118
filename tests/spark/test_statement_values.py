"""UPDATE and MERGE can assign SQL variables, parameters, and random values for each row."""

from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession

VECTORS = ["true", "false"]
AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE TABLE valued (a INT, b INT) USING deltalog")
    spark.sql("INSERT INTO valued VALUES (1, 1), (2, 2)")
    spark.sql("DECLARE OR REPLACE VARIABLE v INT DEFAULT 5")
    yield "valued"
    spark.sql("DROP TABLE valued")
    spark.sql("DROP TEMPORARY VARIABLE v")


@pytest.fixture
def scripting(spark: SparkSession) -> Iterator[None]:
    """Enables SQL scripts, which Spark 4.0 supports only with a setting."""
    spark.conf.set("spark.sql.scripting.enabled", "true")
    yield
    spark.conf.unset("spark.sql.scripting.enabled")


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.table(table).collect()), key=str)


MERGE = """MERGE INTO valued t USING (SELECT v - 4 AS a UNION ALL SELECT v) s ON t.a = s.a AND t.a < v
    WHEN MATCHED AND v = 5 THEN UPDATE SET b = v + 10
    WHEN NOT MATCHED AND v > 0 THEN INSERT (a, b) VALUES (v, session.v + 1)
    WHEN NOT MATCHED BY SOURCE AND b < v THEN UPDATE SET b = b + v"""
MERGED = [(1, 15), (2, 7), (5, 6)]


def test_update_assigns_variables(spark: SparkSession, table: str) -> None:
    spark.sql("UPDATE valued SET b = v + a WHERE a < v")
    assert rows(spark, table) == [(1, 6), (2, 7)]
    spark.sql("DELETE FROM valued WHERE b = v + 2")
    assert rows(spark, table) == [(1, 6)]


def test_merge_has_variables_in_every_part(spark: SparkSession, table: str) -> None:
    spark.sql(MERGE)
    assert rows(spark, table) == MERGED


def test_a_merge_that_adds_columns_has_variables(spark: SparkSession, table: str) -> None:
    spark.conf.set(AUTO_MERGE, "true")
    try:
        spark.sql(MERGE.replace("(a, b) VALUES (v,", "(a, b) VALUES (v + 0,"))
        assert rows(spark, table) == MERGED
    finally:
        spark.conf.unset(AUTO_MERGE)


def test_a_column_has_precedence_over_a_variable(spark: SparkSession, table: str) -> None:
    spark.sql("DECLARE OR REPLACE VARIABLE a INT DEFAULT 99")
    try:
        spark.sql("UPDATE valued SET b = a")
        merged = (
            "MERGE INTO valued t USING (SELECT 1 AS k) s ON t.a = s.k WHEN MATCHED THEN UPDATE SET b = a + v"
        )
        spark.sql(merged)
        assert rows(spark, table) == [(1, 6), (2, 2)]
    finally:
        spark.sql("DROP TEMPORARY VARIABLE a")


def test_an_unknown_name_is_still_an_error(spark: SparkSession, table: str) -> None:
    with pytest.raises(pyspark.errors.AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql("UPDATE valued SET b = w")
    with pytest.raises(pyspark.errors.AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql(MERGE.replace("SET b = v + 10", "SET b = v + w"))


def test_statements_in_a_script_assign_its_variables(
    spark: SparkSession, table: str, scripting: None
) -> None:
    script = f"BEGIN DECLARE v2 INT DEFAULT 7; UPDATE valued SET b = v2 WHERE a = 2; {MERGE}; END"
    spark.sql(script.replace("session.v + 1", "v2"))
    assert rows(spark, table) == [(1, 15), (2, 7), (5, 7)]


def test_parameters_and_identifiers(spark: SparkSession, table: str) -> None:
    spark.sql("UPDATE IDENTIFIER(:name) SET b = :value WHERE a = :a", {"name": table, "value": 8, "a": 2})
    assert rows(spark, table) == [(1, 1), (2, 8)]


@pytest.mark.parametrize("vectors", VECTORS)
def test_drawn_values_are_one_for_each_row(spark: SparkSession, vectors: str) -> None:
    properties = f"delta.enableDeletionVectors = {vectors}, delta.enableChangeDataFeed = true"
    spark.sql(f"CREATE TABLE drawn (a LONG, b STRING, c STRING) USING deltalog TBLPROPERTIES ({properties})")
    try:
        spark.sql("INSERT INTO drawn SELECT id, '', '' FROM range(0, 20, 1, 2)")
        spark.sql("UPDATE drawn SET b = uuid(), c = concat(b, rand()) WHERE a < 15")
        spark.sql(
            "MERGE INTO drawn t USING (SELECT id FROM range(10, 30)) s ON t.a = s.id "
            "WHEN MATCHED THEN UPDATE SET c = uuid() WHEN NOT MATCHED THEN INSERT (a, b, c) VALUES (id, uuid(), uuid())"
        )
        found = spark.table("drawn").collect()
        assert len({row.b for row in found if row.b}) == 25
        assert len({row.c for row in found}) == 30
        feed = spark.sql(
            "SELECT a, c FROM drawn WITH ('readChangeFeed' = 'true', 'startingVersion' = '2') "
            "WHERE _change_type IN ('insert', 'update_postimage') AND _commit_version = 3"
        ).collect()
        assert {tuple(row) for row in feed} == {(row.a, row.c) for row in found if row.a >= 10}
    finally:
        spark.sql("DROP TABLE drawn")


def test_drawn_values_decide_about_no_row(spark: SparkSession, table: str) -> None:
    for statement in (
        "UPDATE valued SET b = 1 WHERE rand() > 0.5",
        "DELETE FROM valued WHERE rand() > 0.5",
        "MERGE INTO valued t USING (SELECT 1 AS k) s ON t.a = s.k WHEN MATCHED AND rand() > 0.5 THEN DELETE",
    ):
        with pytest.raises(pyspark.errors.AnalysisException, match="NON_DETERMINISTIC"):
            spark.sql(statement)


def test_drawn_values_of_structs_and_maps_are_refused(spark: SparkSession) -> None:
    """Random structs and maps are refused, because Spark would draw a new random value for each field, and so combine
    values that do not belong together.
    """
    spark.sql("CREATE TABLE nested (s STRUCT<a: LONG, b: LONG>, m MAP<STRING, LONG>) USING deltalog")
    try:
        for value in (
            "s = CASE WHEN rand() < 0.5 THEN NULL ELSE named_struct('b', 1, 'a', 1) END",
            "m = CASE WHEN rand() < 0.5 THEN map('one', 1) ELSE map('two', 2) END",
        ):
            with pytest.raises(pyspark.errors.AnalysisException, match="NON_DETERMINISTIC"):
                spark.sql(f"UPDATE nested SET {value}")
    finally:
        spark.sql("DROP TABLE nested")


def test_a_query_with_the_hint_of_a_client_changes_nothing(spark: SparkSession, table: str) -> None:
    """Clients of Spark Connect send statements as a hint in a query. In other sessions, a query with this hint changes
    nothing.
    """
    before = spark.table("valued").collect()
    hint = """deltalog_statement('{"statement": "DELETE", "has_condition": false}')"""
    for query in (
        f"SELECT /*+ {hint} */ * FROM valued",
        f"SELECT * FROM (SELECT /*+ {hint} */ * FROM valued)",
    ):
        assert sorted(spark.sql(query).collect()) == sorted(before)
    assert sorted(spark.table("valued").collect()) == sorted(before)


def test_deltalogs_statements_in_a_script(spark: SparkSession, table: str, scripting: None) -> None:
    script = """BEGIN
        DECLARE n INT DEFAULT 3;
        IF n = 3 THEN OPTIMIZE valued WHERE true ZORDER BY (b); ELSE VACUUM valued; END IF;
        WHILE n < 5 DO INSERT INTO valued VALUES (n, CASE WHEN n = 3 THEN 1 ELSE 2 END); SET n = n + 1; END WHILE;
        DELETE FROM valued WHERE a = n - 1;
        BEGIN RESTORE TABLE IDENTIFIER('val' || 'ued') TO VERSION AS OF 1; END;
        GENERATE symlink_format_manifest FOR TABLE valued;
        DESCRIBE HISTORY valued LIMIT 2;
    END"""
    spark.sql(script)
    done = [row.operation for row in spark.sql("DESCRIBE HISTORY valued").collect()]
    assert done[:2] + done[-3:] == ["RESTORE", "DELETE", "OPTIMIZE", "WRITE", "CREATE TABLE"]
    assert rows(spark, table) == [(1, 1), (2, 2)]


def test_names_in_deltalogs_statements_are_expressions(spark: SparkSession, table: str) -> None:
    assert len(spark.sql("DESCRIBE HISTORY IDENTIFIER(:t) LIMIT :n", {"t": table, "n": 1}).collect()) == 1
    spark.sql("OPTIMIZE IDENTIFIER('default.' || :t)", {"t": table}).collect()
    spark.sql("CREATE TABLE IDENTIFIER(:c) SHALLOW CLONE IDENTIFIER(:t)", {"t": table, "c": "copied"})
    spark.sql("DROP TABLE copied")
    spark.sql("CREATE TABLE IDENTIFIER(?) SHALLOW CLONE IDENTIFIER(?)", ["copied", table])
    try:
        assert rows(spark, "copied") == rows(spark, table)
    finally:
        spark.sql("DROP TABLE copied")
    assert spark.sql("DESCRIBE DETAIL IDENTIFIER('valued')").collect()[0].numFiles > 0
