"""`enable(spark, alias_delta=True)`: the format under the name `delta`, without the JVM connector."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog.spark.jvm import Jvm
from deltalog.tables import DeltaTable


@pytest.fixture
def aliased(spark: SparkSession) -> SparkSession:
    """A session with the alias, which is enabled twice."""
    for _ in range(2):
        deltalog.spark.enable(spark, alias_delta=True)
    return spark


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def test_tables_are_read_and_written_by_path(aliased: SparkSession, path: str) -> None:
    aliased.range(2).write.format("delta").save(path)
    aliased.range(2, 3).write.format("delta").mode("append").save(path)
    aliased.sql(f"INSERT INTO delta.`{path}` SELECT 3L")
    assert ids(aliased.read.format("delta").load(path)) == [0, 1, 2, 3]
    assert ids(aliased.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 0")) == [0, 1]
    assert ids(aliased.table(f"delta.`{path}`")) == ids(aliased.table(f"deltalog.`{path}`")) == [0, 1, 2, 3]
    assert ids(aliased.read.format("delta").option("versionAsOf", 1).load(path)) == [0, 1, 2]
    assert ids(DeltaTable.forName(aliased, f"delta.`{path}`").toDF()) == [0, 1, 2, 3]
    assert aliased.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0].version == 2
    assert aliased.sql(f"CALL delta.detail('delta.`{path}`')").collect()[0].format == "delta"
    aliased.sql(f"INSERT OVERWRITE delta.`{path}` SELECT 9L")
    assert ids(aliased.table(f"delta.`{path}`")) == [9]
    aliased.sql(f"UPDATE delta.`{path}` SET id = 1")
    assert ids(aliased.table(f"delta.`{path}`")) == [1]
    aliased.sql(f"DELETE FROM delta.`{path}`")
    assert ids(aliased.table(f"delta.`{path}`")) == []


def test_catalog_tables_are_created_and_read(aliased: SparkSession) -> None:
    aliased.sql("CREATE TABLE aliased_1 (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    aliased.sql("CREATE TABLE aliased_2 USING delta AS SELECT * FROM aliased_1")
    try:
        aliased.sql("INSERT INTO aliased_1 VALUES (1, 'x'), (2, 'y')")
        aliased.range(3, 4).selectExpr("id", "'z' AS p").write.format("delta").mode("append").saveAsTable(
            "aliased_2"
        )
        assert ids(aliased.table("aliased_1")) == [1, 2]
        assert ids(aliased.sql("SELECT * FROM aliased_2")) == [3]
        assert ids(aliased.sql("SELECT * FROM aliased_1 VERSION AS OF 0")) == []
        assert DeltaTable.forName(aliased, "aliased_1").detail().collect()[0].partitionColumns == ["p"]
        assert "delta" in aliased.sql("SHOW CREATE TABLE aliased_1").collect()[0][0]
    finally:
        aliased.sql("DROP TABLE aliased_1")
        aliased.sql("DROP TABLE aliased_2")


def test_catalog_entries_of_the_jvm_connector_are_used(aliased: SparkSession, path: str) -> None:
    """Their provider is `delta`, and they have neither columns nor a path among their options."""
    aliased.range(2).write.format("deltalog").save(path)
    jvm = Jvm(aliased.sparkContext._gateway)
    catalyst: Any = jvm.root.org.apache.spark.sql.catalyst
    aliased.sql(f"CREATE TABLE model (id BIGINT) USING parquet LOCATION '{path}'")
    catalog = aliased._jsparkSession.sessionState().catalog()
    name = catalyst.TableIdentifier("old_entry", jvm.some("default"))
    model = catalog.getTableMetadata(catalyst.TableIdentifier("model"))
    aliased.sql("DROP TABLE model")
    changes = {
        "identifier": name,
        "provider": jvm.some("delta"),
        "schema": jvm.struct('{"type":"struct","fields":[]}'),
    }
    catalog.createTable(jvm.static("CaseClass", "with", model, changes), False, False)
    try:
        assert ids(aliased.table("old_entry")) == [0, 1]
        aliased.sql("INSERT INTO old_entry VALUES (7)")
        assert ids(aliased.table("default.old_entry")) == [0, 1, 7]
        assert ids(DeltaTable.forName(aliased, "old_entry").toDF()) == [0, 1, 7]
    finally:
        aliased.sql("DROP TABLE old_entry")
    assert ids(aliased.read.format("delta").load(path)) == [0, 1, 7]


CONNECTOR = """
public class Connector implements org.apache.spark.sql.sources.DataSourceRegister {
  public String shortName() {
    return "delta";
  }
}
"""


def test_the_catalog_of_the_connector_is_replaced(aliased: SparkSession, path: str) -> None:
    """Notebooks set this catalog, which Spark cannot load without the connector."""
    session = aliased.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    deltalog.spark.enable(session, alias_delta=True)
    session.range(2).write.format("delta").save(path)
    assert ids(session.sql(f"SELECT * FROM delta.`{path}`")) == [0, 1]


@pytest.mark.newest
@pytest.mark.thorough
def test_the_alias_is_refused_if_the_name_is_taken(tmp_path: Path) -> None:
    """Runs in a separate process, with a class that registers the name as the JVM connector does."""
    code = f"""
        from pathlib import Path
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        jvm = spark.sparkContext._jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        compiler.setParentClassLoader(loader)
        compiler.cook({CONNECTOR!r})
        directory = Path({str(tmp_path)!r})
        service = directory / "META-INF" / "services" / "org.apache.spark.sql.sources.DataSourceRegister"
        service.parent.mkdir(parents=True)
        service.write_text("Connector")
        (directory / "Connector.class").write_bytes(bytes(compiler.getBytecodes()["Connector"]))
        loader.addURL(jvm.java.io.File(str(directory)).toURI().toURL())
        import deltalog.errors
        import deltalog.spark
        from deltalog.spark import portable
        for enable in (deltalog.spark.enable, portable.enable):
            try:
                enable(spark, alias_delta=True)
            except deltalog.errors.InvalidArgumentError as error:
                print(error)
        methods = spark._jsparkSession.experimental()
        print(methods.extraStrategies().size(), methods.extraOptimizations().size())
        deltalog.spark.enable(spark).range(2).write.format("deltalog").save(str(directory / "t"))
        print(len(spark.read.format("deltalog").load(str(directory / "t")).collect()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert len(done.stdout.splitlines()) == 4, done.stderr
    native, portable, *rest = done.stdout.splitlines()
    assert "the format delta is Connector in this session" in native
    assert "the format delta is already known to this session" in portable
    assert rest == ["0 0", "2"], done.stderr
