"""Spark's writes compute and check the table's rules for its rows (PROTOCOL, "CHECK Constraints", "Column
Invariants", "Generated Columns", "Default Columns").
"""

import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from deltalog import DeltaTable
from deltalog.errors import InvalidArgumentError, SchemaMismatchError
from tests.crafted import CraftedTable, field

INVARIANT = {"delta.invariants": '{"expression": {"expression": "length(name) > 1"}}'}
FEATURES = ["invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "appendOnly"]
FIELDS = [
    field("id", "integer"),
    field("name", "string", {**INVARIANT, "CURRENT_DEFAULT": "concat('no', 'body')"}),
    {**field("twice", "long", {"delta.generationExpression": "id * 2"}), "nullable": False},
    field("at", "timestamp"),
    field("day", "date", {"delta.generationExpression": "CAST(at AS DATE)"}),
    field("code", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
    field("flag", "string", {"__CHAR_VARCHAR_TYPE_STRING": "char(2)"}),
]
AT = "TIMESTAMP '2026-03-01 23:30:00'"  # In UTC, this is the next day.


def crafted(path: Path, *, required: bool) -> str:
    """Creates an empty table. If `required` is set, the generated column `twice` is NOT NULL."""
    fields = [{**column, "nullable": column["nullable"] or not required} for column in FIELDS]
    table = CraftedTable(
        path,
        fields,
        partition_columns=["day"],
        writer_features=FEATURES,
        configuration={"delta.constraints.positive": "id > 0"},
    )
    table.commit()
    return str(path)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return crafted(tmp_path / "t", required=True)


def save(spark: SparkSession, uri: str, *columns: str, mode: str = "append") -> None:
    spark.range(1, 4).selectExpr("CAST(id AS INT) AS id", *columns).write.format("deltalog").mode(mode).save(
        uri
    )


def rows(spark: SparkSession, uri: str) -> list[Row]:
    return spark.read.format("deltalog").load(uri).orderBy("id").collect()


def test_missing_columns_are_computed_and_rows_checked(spark: SparkSession, uri: str) -> None:
    save(spark, uri, f"{AT} AS at", "'ab  ' AS code", "'x' AS flag")
    found = rows(spark, uri)
    assert [row.twice for row in found] == [2, 4, 6]
    assert {(row.name, row.day, row.code, row.flag) for row in found} == {
        ("nobody", datetime.date(2026, 3, 1), "ab ", "x ")
    }
    save(
        spark,
        uri,
        "'me' AS NAME",
        "id * 2 AS twice",
        f"{AT} AS at",
        "DATE '2026-03-01' AS day",
        mode="overwrite",
    )
    assert [(row.name, row.twice) for row in rows(spark, uri)] == [("me", 2), ("me", 4), ("me", 6)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["'a' AS name"], r"the constraint 'name' \(length\(name\) > 1\) is not met: name = a"),
        (["CAST(NULL AS STRING) AS name"], "the constraint 'name'.*name = NULL"),
        (["id * 3 AS twice"], r"'twice' is not the value of its expression \(id \* 2\).*twice = [369]"),
        (["CAST(NULL AS DATE) AS day", f"{AT} AS at", "id * 3 AS twice"], "'twice'"),
        (["DATE '2026-03-02' AS day", f"{AT} AS at"], "the generated column 'day'"),
        (["'abcd' AS code"], "(?i)exceed"),
        (["'abc' AS flag"], "(?i)exceed"),
    ],
)
def test_a_row_that_breaks_a_rule_is_refused(
    spark: SparkSession, uri: str, columns: list[str], message: str
) -> None:
    with pytest.raises(Exception, match=message) as error:
        save(spark, uri, *columns)
    if "exceed" not in message:  # Spark itself makes this check.
        assert isinstance(error.value, InvalidArgumentError)
        assert "nothing was committed" in str(error.value)
    assert DeltaTable(uri).version() == 0
    assert not list(Path(uri).rglob("*.parquet"))


def test_only_rows_that_are_written_are_checked(spark: SparkSession, uri: str) -> None:
    """Only the rows that are written are checked. Spark must not move a check below a join, where there are other
    rows.
    """
    some = spark.range(-2, 3).selectExpr("CAST(id AS INT) AS id")
    others = spark.range(1, 9).selectExpr("CAST(id AS INT) AS id", "uuid() AS u")
    some.join(others, "id").drop("u").write.format("deltalog").mode("append").save(uri)
    assert [row.id for row in rows(spark, uri)] == [1, 2]
    with pytest.raises(InvalidArgumentError, match=r"'positive'.*id = -?[012]"):
        some.write.format("deltalog").mode("append").save(uri)


def test_inserts_compute_the_columns_that_they_leave_out(spark: SparkSession, tmp_path: Path) -> None:
    uri = crafted(tmp_path / "t", required=False)
    spark.sql(f"CREATE TABLE checked USING deltalog LOCATION '{uri}'")
    try:
        spark.sql("INSERT INTO checked (id, flag) VALUES (1, 'y')")
        spark.sql(f"INSERT INTO checked (at, id, name) SELECT {AT}, 2, DEFAULT")
        found = rows(spark, uri)
        assert [(row.id, row.name, row.twice, row.flag) for row in found] == [
            (1, "nobody", 2, "y "),
            (2, "nobody", 4, None),
        ]
        assert [row.day for row in found] == [None, datetime.date(2026, 3, 1)]
        for statement, message in [
            ("INSERT INTO checked (id) VALUES (-1)", "'positive'"),
            ("INSERT INTO checked (id, twice) VALUES (1, 3)", "'twice'"),
        ]:
            with pytest.raises(InvalidArgumentError, match=message):
                spark.sql(statement)
        assert DeltaTable(uri).version() == 2
    finally:
        spark.sql("DROP TABLE checked")


def test_conditions_on_nested_fields_and_quoted_names(spark: SparkSession, tmp_path: Path) -> None:
    inner: Any = {"type": "struct", "fields": [field("y", "integer"), field("z w", "integer")]}
    table = CraftedTable(
        tmp_path / "t",
        [field("a`b", "integer"), field("s", inner)],
        writer_features=["checkConstraints"],
        configuration={"delta.constraints.c": "s.y < `a``b` AND s.`z w` IS NOT NULL"},
    )
    table.commit()
    uri = str(tmp_path / "t")
    good = spark.range(3).select(
        (F.col("id") + 1).cast("int").alias("a`b"),
        F.struct(F.col("id").cast("int").alias("y"), F.lit(1).alias("z w")).alias("s"),
    )
    good.write.format("deltalog").mode("append").save(uri)
    assert spark.read.format("deltalog").load(uri).count() == 3
    bad = good.withColumn("s", F.struct(F.col("s.y"), F.lit(None).cast("int").alias("z w")))
    with pytest.raises(InvalidArgumentError, match="the constraint 'c'"):
        bad.write.format("deltalog").mode("append").save(uri)


def test_rules_see_empty_partition_values_as_they_are_stored(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL, "Partition Value Serialization": in a partition column, an empty string is stored as NULL. The
    constraint is not true for NULL, so it refuses the empty string.
    """
    table = CraftedTable(
        tmp_path / "t",
        [field("id", "long"), field("p", "string")],
        partition_columns=["p"],
        writer_features=["checkConstraints"],
        configuration={"delta.constraints.c": "p <> 'x'"},
    )
    table.commit()
    uri = str(tmp_path / "t")
    spark.range(2).selectExpr("id", "'y' AS p").write.format("deltalog").mode("append").save(uri)
    with pytest.raises(InvalidArgumentError, match=r"the constraint 'c'.*p = NULL"):
        spark.range(2).selectExpr("id", "'' AS p").write.format("deltalog").mode("append").save(uri)
    assert spark.read.format("deltalog").load(uri).count() == 2


def test_an_empty_string_is_null_in_a_required_partition_column(spark: SparkSession, tmp_path: Path) -> None:
    fields = [field("id", "long"), {**field("p", "string"), "nullable": False}]
    table = CraftedTable(tmp_path / "t", fields, partition_columns=["p"])
    table.commit()
    data = spark.range(1).selectExpr("id", "'' AS p")
    with pytest.raises(SchemaMismatchError, match="partition column 'p' has NULL or an empty string"):
        data.write.format("deltalog").mode("append").save(str(tmp_path / "t"))
    assert DeltaTable(tmp_path / "t").version() == 0
    assert not list(tmp_path.rglob("*.parquet"))


def test_generated_columns_are_computed_from_values_as_they_are_stored(
    spark: SparkSession, tmp_path: Path
) -> None:
    fields = [
        field("id", "long"),
        field("p", "string"),
        field("absent", "boolean", {"delta.generationExpression": "p IS NULL"}),
    ]
    table = CraftedTable(
        tmp_path / "t", fields, partition_columns=["p"], writer_features=["generatedColumns"]
    )
    table.commit()
    data = spark.range(1).selectExpr("id", "'' AS p")
    data.write.format("deltalog").mode("append").save(str(tmp_path / "t"))
    (row,) = rows(spark, str(tmp_path / "t"))
    assert (row.p, row.absent) == (None, True)
