"""Spark and the core treat `char(n)` and `varchar(n)` inside structs, arrays and maps in the same way."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import UnsupportedFeatureError
from tests import lengths
from tests.crafted import CraftedTable


def test_spark_stores_the_same(spark: SparkSession, tmp_path: Path) -> None:
    # Spark reads the rows from a table without length limits.
    plain = [{**column, "metadata": {}} for column in lengths.FIELDS]
    source = CraftedTable(tmp_path / "source", plain).commit()
    target = CraftedTable(tmp_path / "target", lengths.FIELDS).commit()
    write_deltalake(source, lengths.GIVEN, mode="append")
    data = spark.read.format("deltalog").load(str(source))
    data.write.format("deltalog").mode("append").save(str(target))
    assert DeltaTable(target).to_pyarrow_table().sort_by("id").to_pylist() == lengths.STORED.to_pylist()
    write_deltalake(source, lengths.REFUSED[3][0], mode="overwrite")
    with pytest.raises(Exception, match=r"(?i)exceed"):
        spark.read.format("deltalog").load(str(source)).write.format("deltalog").mode("append").save(
            str(target)
        )
    assert DeltaTable(target).version() == 1


def test_rows_with_the_schema_of_the_table_are_checked(spark: SparkSession, path: str) -> None:
    """Rows are checked even if their schema has the metadata of the table's columns, because their values may still be
    too long.
    """
    spark.sql(f"CREATE TABLE deltalog.`{path}` (v VARCHAR(3), c CHAR(3)) USING deltalog")
    table = spark.read.format("deltalog").load(path)
    long = [spark.createDataFrame([row], table.schema) for row in (("long", "x"), ("abc", "long"))]
    plain = spark.createDataFrame([("long", "x")], "v string, c string")
    for rows in (*long, table.union(plain)):
        with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
            rows.write.format("deltalog").mode("append").save(path)
    spark.createDataFrame([("abc", "x")], table.schema).write.format("deltalog").mode("append").save(path)
    assert DeltaTable(path).to_pyarrow_table().to_pylist() == [{"v": "abc", "c": "x  "}]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_merge_stores_fields_by_their_lengths(spark: SparkSession, path: str, vectors: str) -> None:
    """MERGE pads and checks fields by their lengths, also if it adds columns. It cannot add a field to a struct that
    has fields with lengths, because their types are recorded for the whole struct.
    """
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id LONG, st STRUCT<v: VARCHAR(3), c: CHAR(3)>) USING deltalog "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, named_struct('v', 'abc', 'c', 'x'))")
    version = DeltaTable(path).version()

    def merge(key: int, struct: str, evolution: str = "WITH SCHEMA EVOLUTION") -> None:
        source = f"(SELECT {key}L AS id, named_struct({struct}) AS st, 5 AS more)"
        clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        spark.sql(f"MERGE {evolution} INTO {table} t USING {source} s ON t.id = s.id {clauses}")

    for key in (1, 2):
        for struct in ("'v', 'long', 'c', 'x'", "'v', 'abc', 'c', 'long'"):
            for evolution in ("", "WITH SCHEMA EVOLUTION"):
                with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
                    merge(key, struct, evolution)
        with pytest.raises(UnsupportedFeatureError, match="lengths of strings"):
            merge(key, "'v', 'abc', 'c', 'x', 'n', 5")
    assert DeltaTable(path).version() == version
    merge(1, "'v', 'd', 'c', 'y'")
    merge(2, "'v', 'e', 'c', 'zz'")
    found = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["st"], row["more"]) for row in found] == [
        (1, {"v": "d", "c": "y  "}, 5),
        (2, {"v": "e", "c": "zz "}, 5),
    ]
