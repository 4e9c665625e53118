"""Spark writes columns that have a collation, and uses it to compare strings (table feature `collations`)."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from deltalog.errors import InvalidArgumentError
from tests.crafted import CraftedTable, field

KEY = "__COLLATIONS"


def collations(uri: str) -> dict[str, object]:
    fields = json.loads(DeltaTable(uri).schema().to_json())["fields"]
    return {column["name"]: column["metadata"][KEY] for column in fields if KEY in column["metadata"]}


def test_collations_of_a_table_are_kept_and_its_constraints_use_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = CraftedTable(
        tmp_path / "t",
        [field("id", "long"), field("s", "string", {KEY: {"s": "spark.UTF8_LCASE"}})],
        writer_features=["collations", "domainMetadata", "checkConstraints"],
        configuration={"delta.constraints.c": "s <> 'X'"},
    )
    uri = str(table.commit())
    data = spark.sql("SELECT id, IF(id = 1, 'B', 'a') AS s FROM range(1, 3)")
    data.write.format("deltalog").mode("append").save(uri)
    assert collations(uri) == {"s": {"s": "spark.UTF8_LCASE"}}
    found = spark.read.format("deltalog").load(uri)
    assert [row.id for row in found.where("s = 'b'").collect()] == [1]
    assert [row.id for row in found.where("s < 'b'").collect()] == [2]
    with pytest.raises(InvalidArgumentError, match="'c'"):
        spark.sql("SELECT 3 AS id, 'x' AS s").write.format("deltalog").mode("append").save(uri)


def test_a_new_table_has_the_collations_of_the_data(spark: SparkSession, path: str) -> None:
    data = spark.sql("SELECT 1 AS id, 'B' COLLATE UTF8_LCASE AS s, array('C' COLLATE UNICODE_CI) AS l")
    data.write.format("deltalog").save(path)
    assert set(collations(path)) == {"s", "l"}
    assert {"collations", "domainMetadata"} <= set(DeltaTable(path).protocol().writer_features or [])
    found = spark.read.format("deltalog").load(path)
    for name in ("s", "l"):
        assert found.schema[name].dataType.simpleString() == data.schema[name].dataType.simpleString()
    assert found.where("s = 'b' AND array_contains(l, 'c' COLLATE UNICODE_CI)").count() == 1


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("partitioning", ["", "PARTITIONED BY (k)"])
def test_statements_find_rows_that_are_equal_by_the_collation(
    spark: SparkSession, path: str, vectors: str, partitioning: str
) -> None:
    """Statements find rows that are equal according to a collation. Statistics and the keys of a MERGE have the order
    of bytes, so they must not be used to skip files.
    """
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (k STRING COLLATE UTF8_LCASE, v INT) USING deltalog {partitioning} "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
    )
    for row in ("('A', 1)", "('b', 2)", "('C', 3)", "('Zebra', 4)", "('e', 5)"):
        spark.sql(f"INSERT INTO {table} VALUES {row}")
    source = (
        "(SELECT * FROM VALUES ('a' COLLATE UTF8_LCASE, 10), ('B' COLLATE UTF8_LCASE, 20), "
        "('zEBRA' COLLATE UTF8_LCASE, 40), ('d' COLLATE UTF8_LCASE, 50) AS v(k, v))"
    )
    spark.sql(
        f"MERGE INTO {table} t USING {source} s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT *"
    )

    def rows() -> list[tuple[str, int]]:
        return sorted(tuple(row) for row in spark.sql(f"SELECT k, v FROM {table}").collect())

    assert rows() == [("A", 10), ("C", 3), ("Zebra", 40), ("b", 20), ("d", 50), ("e", 5)]
    spark.sql(f"DELETE FROM {table} WHERE k = 'zebra'")
    spark.sql(f"UPDATE {table} SET v = 77 WHERE k IN ('a', 'E')")
    spark.sql(f"DELETE FROM {table} WHERE k > 'D'")
    assert rows() == [("A", 77), ("C", 3), ("b", 20), ("d", 50)]
    # If there are too many keys for a set, their bounds in the order of the collation are used.
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT if(id = 7, 'B', concat('c', id)) COLLATE UTF8_LCASE AS k "
        "FROM range(20000)) s ON t.k = s.k WHEN MATCHED THEN DELETE"
    )
    assert rows() == [("A", 77), ("C", 3), ("d", 50)]
