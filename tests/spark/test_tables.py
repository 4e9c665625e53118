"""`DeltaTable` has the same methods as `delta.tables.DeltaTable`."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from deltalog import InvalidArgumentError, NotATableError
from deltalog.spark.tables import DeltaTable


def test_history_and_detail_describe_the_table(spark: SparkSession, path: str) -> None:
    spark.range(3).selectExpr("id", "string(id) AS p").write.format("deltalog").partitionBy("p").save(path)
    spark.range(1).selectExpr("id", "'z' AS p").write.format("deltalog").mode("append").save(path)
    table = DeltaTable.forPath(spark, path)
    history = table.history().collect()
    assert [row.version for row in history] == [1, 0]
    assert all(row.timestamp is not None for row in history)
    assert history[0].operation == "WRITE"
    assert history[0].operationParameters["mode"] == "Append"
    assert history[0].engineInfo.startswith(f"Apache-Spark/{spark.version} deltalog/")
    assert [row.version for row in table.history(1).collect()] == [1]
    detail = table.detail().collect()[0]
    assert detail.format == "delta"
    assert detail.partitionColumns == ["p"]
    assert detail.numFiles == 4
    assert detail.sizeInBytes > 0
    assert detail.location.startswith("file:///")


def test_tables_are_found_by_name(spark: SparkSession, path: str) -> None:
    spark.range(3).write.format("deltalog").save(path)
    assert DeltaTable.forName(spark, f"deltalog.`{path}`").toDF().count() == 3
    spark.range(2).write.format("deltalog").saveAsTable("named")
    try:
        assert DeltaTable.forName(spark, "named").toDF().count() == 2
    finally:
        spark.sql("DROP TABLE named")


def test_the_name_of_a_view_is_refused(spark: SparkSession) -> None:
    spark.range(2).write.format("deltalog").saveAsTable("named")
    spark.sql("CREATE VIEW pv AS SELECT * FROM named")
    spark.sql("CREATE OR REPLACE TEMP VIEW tv AS SELECT * FROM named")
    spark.sql("CREATE TABLE other USING parquet AS SELECT 1 AS a")
    try:
        for view in ("pv", "default.pv", "tv"):
            with pytest.raises(InvalidArgumentError, match=f"{view} is a view.*spark.table\\('{view}'\\)"):
                DeltaTable.forName(spark, view)
        with pytest.raises(InvalidArgumentError, match="its provider is parquet"):
            DeltaTable.forName(spark, "other")
    finally:
        spark.sql("DROP TABLE other")
        spark.sql("DROP VIEW pv")
        spark.catalog.dropTempView("tv")
        spark.sql("DROP TABLE named")


def test_is_delta_table_is_true_only_for_tables(spark: SparkSession, path: str) -> None:
    assert not DeltaTable.isDeltaTable(spark, path)
    with pytest.raises(NotATableError, match="no Delta table"):
        DeltaTable.forPath(spark, path)
    spark.range(3).write.format("deltalog").save(path)
    assert DeltaTable.isDeltaTable(spark, path)


@pytest.mark.oldest
def test_conditions_name_the_columns_of_a_table_by_its_name(spark: SparkSession) -> None:
    """Conditions may qualify columns with the table's name, as in SQL and in the JVM connector: `t.id`, `db.t.id` and
    `spark_catalog.db.t.id`.
    """
    spark.sql("CREATE TABLE called (id INT, n INT) USING deltalog")
    spark.sql("INSERT INTO called VALUES (1, 0), (2, 0), (3, 0)")
    for number, prefix in enumerate(("", "called.", "default.called.", "spark_catalog.default.called."), 1):
        for name in ("called", "default.called", "spark_catalog.default.called"):
            table = DeltaTable.forName(spark, name)
            table.update(f"{prefix}id = 1", {"n": f"{prefix}n + 1"})
            table.delete(f"{prefix}n < 0")
        assert table.toDF().where(f"{prefix}n = {3 * number}").count() == 1
    source = spark.range(2, 5).alias("s")
    merge = table.merge(source, "called.id = s.id").whenMatchedUpdate("called.n = 0", {"n": "called.n - 1"})
    merge.whenNotMatchedInsert(values={"called.id": "s.id", "n": "7"}).execute()
    frame = table.toDF()
    table.delete((frame.id == 3) & (sf.col("called.n") == -1))
    assert sorted(frame.select("called.id", "n").collect()) == [(1, 12), (2, -1), (3, -1), (4, 7)]
    assert sorted(spark.table("called").collect()) == [(1, 12), (2, -1), (4, 7)]
    # If the table has an alias, its name can no longer be used.
    renamed = table.alias("other")
    renamed.delete("other.id = 4")
    with pytest.raises(AnalysisException, match="called"):
        renamed.delete("called.id = 1")
    path = table.detail().collect()[0].location
    DeltaTable.forName(spark, f"deltalog.`{path.removeprefix('file:')}`").delete("id = 2")
    assert [row.id for row in spark.table("called").collect()] == [1]
    spark.sql("DROP TABLE called")
