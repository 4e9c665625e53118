"""Schemas of queries and descriptions of tables are the same as with the JVM connector."""

from pathlib import Path

from pyspark.sql import SparkSession

import deltalog.tables
from deltalog import DeltaTable


def test_schemas_of_queries_lack_what_makes_columns(spark: SparkSession, path: str) -> None:
    """The schema of a query has no metadata of identity or generated columns, so a table that is created from it does
    not get such columns by accident.
    """
    spark.sql(
        f"CREATE TABLE deltalog.`{path}` (i BIGINT GENERATED ALWAYS AS IDENTITY, h INT COMMENT 'c', "
        "g INT GENERATED ALWAYS AS (h + 1), s STRUCT<x: INT>) USING deltalog "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO deltalog.`{path}` (h) VALUES (1)")
    table = f"deltalog.`{path}`"
    frames = [
        spark.table(table),
        spark.read.format("deltalog").load(path),
        spark.sql(f"SELECT * FROM {table}"),
    ]
    for frame in frames:
        assert {field.name: field.metadata for field in frame.schema} == {
            "i": {},
            "h": {"comment": "c"},
            "g": {},
            "s": {},
        }
        assert frame.select("s.x").schema["x"].metadata == {}
        assert [(row.i, row.g) for row in frame.collect()] == [(1, 2)]
    copy = f"{path} copied"
    deltalog.tables.DeltaTable.create(spark).location(copy).addColumns(frames[0].schema).execute()
    assert "identity" not in str(DeltaTable(copy).schema().to_json())
    assert "generationExpression" not in str(DeltaTable(copy).schema().to_json())


def test_tables_at_a_location_are_external(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE TABLE outside (a INT) USING deltalog LOCATION '{path}'")
    spark.sql("CREATE TABLE inside (a INT) USING deltalog")
    try:
        for name, kind in (("outside", "EXTERNAL"), ("inside", "MANAGED")):
            described = {
                row.col_name: row.data_type for row in spark.sql(f"DESCRIBE EXTENDED {name}").collect()
            }
            assert described["Type"] == kind
            assert spark.catalog.getTable(name).tableType == kind
            has_location = "LOCATION" in spark.sql(f"SHOW CREATE TABLE {name}").collect()[0][0]
            assert has_location is (kind == "EXTERNAL")
    finally:
        spark.sql("DROP TABLE outside")
        spark.sql("DROP TABLE inside")
    assert Path(path).exists()


def test_the_protocol_is_among_the_properties(spark: SparkSession, path: str) -> None:
    table = f"deltalog.`{path}`"
    legacy = "'delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '4'"
    spark.sql(f"CREATE TABLE {table} (a INT) USING deltalog TBLPROPERTIES ({legacy})")
    properties = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert properties["delta.minReaderVersion"] == "1"
    assert properties["delta.minWriterVersion"] == "7"
    implied = ["appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"]
    assert spark.sql(f"DESCRIBE DETAIL {table}").collect()[0].tableFeatures == implied
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    properties = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert properties["delta.minReaderVersion"] == "3"
    assert properties["delta.feature.deletionVectors"] == "supported"
    features = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0].tableFeatures
    assert features == sorted([*implied, "deletionVectors"])
    shown = spark.sql(f"SHOW CREATE TABLE {table}").collect()[0][0]
    spark.sql(shown.replace(path, f"{path} again"))
    again = spark.sql(f"DESCRIBE DETAIL deltalog.`{path} again`").collect()[0]
    assert again.tableFeatures == features
