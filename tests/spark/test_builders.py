"""Table builders and methods that change the protocol. They have the same names as in `delta.tables`."""

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

import deltalog
from deltalog import InvalidArgumentError, SchemaMismatchError
from deltalog.tables import DeltaTable, IdentityGenerator


def fields(path: str) -> dict[str, Any]:
    return {field.name: field for field in deltalog.DeltaTable(path).schema().fields}


def test_a_table_with_all_clauses_is_that_of_the_statement(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    """A builder creates the same table as the equivalent SQL statement: schema, metadata and protocol are equal."""
    built = (
        DeltaTable.create(spark)
        .tableName("built")
        .location(path)
        .comment("about it")
        .addColumn("id", "BIGINT", nullable=False, comment="the key")
        .addColumn("twice", LongType(), generatedAlwaysAs="id * 2")
        .addColumn("code", "VARCHAR(3)")
        .addColumns([StructField("s", StructType([StructField("x.y", IntegerType())]))])
        .addColumn("p", StringType())
        .partitionedBy("p")
        .property("Own.Key", "Value")
        .property("delta.appendOnly", "true")
        .execute()
    )
    other = f"{tmp_path}/by statement"
    spark.sql(
        "CREATE TABLE stated (id BIGINT NOT NULL COMMENT 'the key', twice BIGINT GENERATED ALWAYS AS (id * 2), "
        "code VARCHAR(3), s STRUCT<`x.y`: INT>, p STRING) USING deltalog PARTITIONED BY (p) COMMENT 'about it' "
        f"TBLPROPERTIES ('Own.Key' = 'Value', 'delta.appendOnly' = 'true') LOCATION '{other}'"
    )
    try:
        one, two = deltalog.DeltaTable(path), deltalog.DeltaTable(other)
        assert one.schema().to_json() == two.schema().to_json()
        assert one.protocol() == two.protocol()
        assert one.metadata().configuration == two.metadata().configuration
        assert (one.metadata().description, one.metadata().partition_columns) == ("about it", ["p"])
        assert one.history(1)[0]["operation"] == two.history(1)[0]["operation"] == "CREATE TABLE"
        spark.sql("INSERT INTO built (id, code, p) VALUES (4, 'abc', 'q')")
        assert built.toDF().select("id", "twice", "p").collect() == [(4, 8, "q")]
        assert spark.table("built").count() == 1
    finally:
        for name in ("built", "stated"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_modes(spark: SparkSession, path: str) -> None:
    def columns(builder: Any, name: str) -> None:
        builder.location(path).addColumn(name, "INT").execute()

    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        columns(DeltaTable.replace(spark), "z")
    columns(DeltaTable.createIfNotExists(spark), "a")
    columns(DeltaTable.createIfNotExists(spark), "b")
    assert list(fields(path)) == ["a"]
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        columns(DeltaTable.create(spark), "b")
    columns(DeltaTable.replace(spark), "b")
    assert list(fields(path)) == ["b"]
    columns(DeltaTable.createOrReplace(spark), "c")
    assert list(fields(path)) == ["c"]
    operations = [commit["operation"] for commit in deltalog.DeltaTable(path).history()]
    assert operations == ["CREATE OR REPLACE TABLE", "REPLACE TABLE", "CREATE TABLE"]
    DeltaTable.createOrReplace(spark).tableName(f"deltalog.`{path}`").addColumn("d", "INT").execute()
    assert list(fields(path)) == ["d"]


def test_identity_columns_and_clustering(spark: SparkSession, path: str) -> None:
    table = (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("always", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=10, step=5))
        .addColumn("given", "BIGINT", generatedByDefaultAs=IdentityGenerator())
        .addColumns([StructField("s", StructType([StructField("x", IntegerType())]))])
        .clusterBy("s.x", "given")
        .execute()
    )
    assert deltalog.DeltaTable(path).clustering_columns() == ["s.x", "given"]
    metadata = {name: field.metadata for name, field in fields(path).items()}
    assert (metadata["always"]["delta.identity.start"], metadata["always"]["delta.identity.step"]) == (10, 5)
    spark.sql(f"INSERT INTO deltalog.`{path}` (given) VALUES (-1)")
    assert table.toDF().select("always", "given").collect() == [(10, -1)]
    with pytest.raises(SchemaMismatchError, match="always"):
        spark.sql(f"INSERT INTO deltalog.`{path}` (always) VALUES (1)")


def test_wrong_definitions_are_refused(spark: SparkSession, path: str) -> None:
    def builder() -> Any:
        return DeltaTable.create(spark).location(path)

    generator, text = IdentityGenerator(), cast(Any, "1")
    for wrong, error in (
        (lambda: DeltaTable.create(spark).addColumn("a", "INT").execute(), "name or a location"),
        (lambda: builder().addColumn("a", 1), "dataType cannot be 1; pass text or a DataType"),
        (lambda: builder().addColumn("a", "NOTHING"), "NOTHING"),
        (
            lambda: builder().addColumn("a", "INT", nullable="no"),
            "nullable cannot be 'no'; pass True or False",
        ),
        (lambda: builder().addColumn("a", "INT", True, "1", generator), "both"),
        (lambda: builder().addColumn("a", "INT", True, None, "1"), "generatedByDefaultAs cannot be '1'"),
        (lambda: builder().addColumn("a", "BIGINT", True, IdentityGenerator(step=0)), "step .* not be 0"),
        (lambda: builder().addColumn("a", "INT", True, generator).execute(), "(?i)identity"),
        (
            lambda: builder().addColumn("a", "BIGINT", True, IdentityGenerator(start=text)),
            "start cannot be '1'",
        ),
        (lambda: builder().addColumn("a", "BIGINT", True, 1), "generatedAlwaysAs cannot be 1; pass SQL text"),
        (lambda: builder().addColumns(["a"]), "cols cannot be"),
        (lambda: builder().addColumns(3), "cols cannot be 3; pass a StructType"),
        (lambda: builder().partitionedBy(3), "cols cannot be"),
        (lambda: builder().partitionedBy("a").clusterBy("b"), "either partitioned or clustered"),
        (lambda: builder().addColumn("a", "INT").partitionedBy(["b"]).execute(), "b"),
        (lambda: builder().property("a", 1), "value cannot be 1; pass text"),
        (lambda: builder().property("delta.nonsense", "1").addColumn("a", "INT").execute(), "nonsense"),
        (lambda: builder().tableName("a b").addColumn("a", "INT").execute(), "(?i)syntax"),
    ):
        with pytest.raises(AnalysisException, match=error):
            wrong()
    assert not Path(path).exists()


def test_features(spark: SparkSession, path: str) -> None:
    spark.range(3).write.format("deltalog").save(path)
    table = DeltaTable.forPath(spark, path)
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "mine")
    try:
        table.addFeatureSupport("deletionVectors")
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    assert table.history(1).collect()[0].userMetadata == "mine"
    assert "deletionVectors" in table.detail().collect()[0].tableFeatures
    table.dropFeatureSupport("deletionVectors")
    assert "deletionVectors" not in table.detail().collect()[0].tableFeatures
    wrong: list[tuple[str, tuple[Any, ...], str]] = [
        ("addFeatureSupport", ("nonsense",), "no table feature 'nonsense'"),
        ("addFeatureSupport", (1,), "pass text"),
        ("dropFeatureSupport", ("clustering", "yes"), "truncateHistory"),
        ("upgradeTableProtocol", ("1", 2), "readerVersion"),
        ("upgradeTableProtocol", (4, 7), "no reader version 4"),
    ]
    for verb, arguments, error in wrong:
        with pytest.raises(InvalidArgumentError, match=error):
            getattr(table, verb)(*arguments)


def test_versions_of_the_protocol(spark: SparkSession, path: str) -> None:
    spark.range(3).write.format("deltalog").save(path)
    table = DeltaTable.forPath(spark, path)

    def versions() -> tuple[int, int]:
        [detail] = table.detail().collect()
        return detail.minReaderVersion, detail.minWriterVersion

    assert versions() == (1, 2)
    table.upgradeTableProtocol(1, 4)
    assert versions() == (1, 4)
    table.upgradeTableProtocol(1, 2)
    table.upgradeTableProtocol(3, 7)
    assert (versions(), deltalog.DeltaTable(path).version()) == ((1, 4), 1)
    assert spark.sql(f"CALL deltalog.upgrade_protocol('{path}', 2, writer_version => 5)").collect() == [(2,)]
    assert versions() == (2, 5)
    table.addFeatureSupport("deletionVectors")
    assert versions() == (3, 7)
    assert "columnMapping" in (deltalog.DeltaTable(path).protocol().writer_features or [])
    assert sorted(row.id for row in table.toDF().collect()) == [0, 1, 2]
