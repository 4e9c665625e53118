"""The source of a MERGE can be anything that Spark can read, such as views, tables of other formats and user-defined
functions.
"""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltalog.tables
from deltalog import CommitConflictError, DeltaTable
from tests.spark.statement_tables import VECTORS, ordered

ROWS = "SELECT * FROM VALUES (1L, 'x'), (9L, 'z') AS v(id, s)"
MERGE = (
    "MERGE INTO {} t USING {} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
OLD = [(1, "a"), (2, "b"), (3, "c")]
MERGED = [(1, "x"), (2, "b"), (3, "c"), (9, "z")]


@pytest.fixture
def table(spark: SparkSession, path: str) -> str:
    data = spark.createDataFrame(OLD, "id long, s string")
    data.repartitionByRange(2, "id").write.format("deltalog").options(**VECTORS).save(path)
    return f"deltalog.`{path}`"


def rows(path: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(path).to_pyarrow_table(columns=["id", "s"]).to_pylist()
    return ordered(tuple(row.values()) for row in found)


def test_views(spark: SparkSession, path: str, table: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW given AS {ROWS}")
    spark.sql(f"CREATE VIEW shifted AS SELECT id + 1 AS id, s FROM {table} WHERE id < 9")
    try:
        spark.sql(MERGE.format(table, "given"))
        assert rows(path) == MERGED
        # A view of the target reads the version on which the statement is based.
        spark.sql(MERGE.format(table, "shifted"))
        assert rows(path) == [(1, "x"), (2, "x"), (3, "b"), (4, "c"), (9, "z")]
    finally:
        spark.sql("DROP VIEW shifted")
        spark.catalog.dropTempView("given")


def test_older_versions_of_the_target(spark: SparkSession, path: str, table: str) -> None:
    """If the source is an older version of the target, this version is read as the source, and the newest version is
    the target.
    """
    before = spark.read.format("deltalog").load(path)
    spark.sql(f"UPDATE {table} SET s = 'new' WHERE id < 3")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    target = deltalog.tables.DeltaTable.forPath(spark, path)
    again = target.alias("t").merge(before.alias("s"), "t.id = s.id").whenMatchedUpdateAll()
    with pytest.raises(CommitConflictError):
        again.execute()
    older = spark.read.format("deltalog").option("versionAsOf", 0).load(path)
    target.alias("t").merge(older.alias("s"), "t.id = s.id AND t.id = 1").whenMatchedUpdateAll().execute()
    assert rows(path) == [(1, "a"), (2, "new"), (4, "d")]
    merge = MERGE.format(table, f"(SELECT * FROM {table} VERSION AS OF 0)")
    spark.sql(f"{merge} WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert rows(path) == OLD


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_tables_of_other_formats(spark: SparkSession, path: str, table: str, form: str) -> None:
    spark.sql(f"CREATE TABLE given USING {form} AS {ROWS}")
    try:
        spark.sql(MERGE.format(table, "given"))
    finally:
        spark.sql("DROP TABLE given")
    assert rows(path) == MERGED


def test_files_by_their_path(spark: SparkSession, path: str, table: str, tmp_path: Path) -> None:
    spark.sql(ROWS).write.parquet(str(tmp_path / "given"))
    spark.sql(MERGE.format(table, f"parquet.`{tmp_path}/given`"))
    assert rows(path) == MERGED


def test_common_table_expressions(spark: SparkSession, path: str, table: str) -> None:
    """Common table expressions may be in front of the MERGE statement or in its source."""
    spark.sql(f"WITH c AS ({ROWS}) {MERGE.format(table, 'c')}")
    assert rows(path) == MERGED
    inner = f"(WITH c AS ({ROWS}), d AS (SELECT id + 1 AS id, s FROM c) SELECT * FROM d WHERE id > 5)"
    spark.sql(MERGE.format(table, inner))
    assert rows(path) == ordered([*MERGED, (10, "z")])


def test_functions_of_the_user_in_java(spark: SparkSession, path: str, table: str, tmp_path: Path) -> None:
    """User-defined functions in Java may be used in the source, in conditions and in values."""
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(
        "package user; public class Next implements org.apache.spark.sql.api.java.UDF1 {"
        "  public Object call(Object value) { return Long.valueOf(((Number) value).longValue() + 1); } }"
    )
    file = tmp_path / "classes" / "user" / "Next.class"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(compiler.getBytecodes()["user.Next"]))
    loader.addURL(jvm.java.io.File(str(tmp_path / "classes")).toURI().toURL())
    function = jvm.java.lang.Class.forName("user.Next", True, loader).getConstructor(None).newInstance(None)
    # `registerJavaFunction` needs generic parameters of the class, which the compiler Janino does not keep.
    functions: Any = spark._jsparkSession
    functions.udf().register("next_of", function, jvm.org.apache.spark.sql.types.DataTypes.LongType)
    try:
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT next_of(id) AS id, s FROM ({ROWS})) s ON t.id = s.id "
            "WHEN MATCHED AND next_of(t.id) = 3 THEN UPDATE SET s = CAST(next_of(s.id) AS STRING) "
            "WHEN NOT MATCHED AND next_of(s.id) > 5 THEN INSERT (id, s) VALUES (next_of(s.id), s.s)"
        )
        assert rows(path) == ordered([(1, "a"), (2, "3"), (3, "c"), (11, "z")])
        spark.sql(
            MERGE.format(table, f"({ROWS})").replace("t.id = s.id", "next_of(t.id) = next_of(s.id) + 1")
        )
        assert rows(path) == ordered([(1, "x"), (1, "a"), (3, "c"), (9, "z"), (11, "z")])
    finally:
        spark.sql("DROP TEMPORARY FUNCTION next_of")
