"""The format can also be called `delta` if no other source has the name."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource

import deltalog.spark
from deltalog.errors import InvalidArgumentError
from deltalog.spark.configuration import OURS, jar
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.alias import SETTING
from deltalog.tables import DeltaTable
from tests.spark.processes import run_python


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def test_tables_are_read_and_written_by_path(spark: SparkSession, path: str) -> None:
    spark.range(2).write.format("delta").save(path)
    spark.range(2, 3).write.format("delta").mode("append").save(path)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 3L")
    assert ids(spark.read.format("delta").load(path)) == [0, 1, 2, 3]
    assert ids(spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 0")) == [0, 1]
    assert ids(spark.table(f"delta.`{path}`")) == ids(spark.table(f"deltalog.`{path}`")) == [0, 1, 2, 3]
    assert ids(spark.read.format("delta").option("versionAsOf", 1).load(path)) == [0, 1, 2]
    assert ids(DeltaTable.forName(spark, f"delta.`{path}`").toDF()) == [0, 1, 2, 3]
    assert spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0].version == 2
    assert spark.sql(f"CALL delta.detail('delta.`{path}`')").collect()[0].format == "delta"
    spark.sql(f"INSERT OVERWRITE delta.`{path}` SELECT 9L")
    assert ids(spark.table(f"delta.`{path}`")) == [9]
    spark.sql(f"UPDATE delta.`{path}` SET id = 1")
    assert ids(spark.table(f"delta.`{path}`")) == [1]
    spark.sql(f"DELETE FROM delta.`{path}`")
    assert ids(spark.table(f"delta.`{path}`")) == []


def test_catalog_tables_are_created_and_read(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE aliased_1 (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    spark.sql("CREATE TABLE aliased_2 USING delta AS SELECT * FROM aliased_1")
    try:
        spark.sql("INSERT INTO aliased_1 VALUES (1, 'x'), (2, 'y')")
        spark.range(3, 4).selectExpr("id", "'z' AS p").write.format("delta").mode("append").saveAsTable(
            "aliased_2"
        )
        assert ids(spark.table("aliased_1")) == [1, 2]
        assert ids(spark.sql("SELECT * FROM aliased_2")) == [3]
        assert ids(spark.sql("SELECT * FROM aliased_1 VERSION AS OF 0")) == []
        assert DeltaTable.forName(spark, "aliased_1").detail().collect()[0].partitionColumns == ["p"]
        assert "delta" in spark.sql("SHOW CREATE TABLE aliased_1").collect()[0][0]
    finally:
        spark.sql("DROP TABLE aliased_1")
        spark.sql("DROP TABLE aliased_2")


def test_catalog_entries_of_the_jvm_connector_are_used(spark: SparkSession, path: str) -> None:
    """In the connector's catalog entries, the provider is `delta`, and there are neither columns nor a path option."""
    spark.range(2).write.format("deltalog").save(path)
    jvm = Jvm(spark.sparkContext._gateway)
    catalyst: Any = jvm.root.org.apache.spark.sql.catalyst
    spark.sql(f"CREATE TABLE model (id BIGINT) USING parquet LOCATION '{path}'")
    catalog = spark._jsparkSession.sessionState().catalog()
    name = catalyst.TableIdentifier("old_entry", jvm.some("default"))
    model = catalog.getTableMetadata(catalyst.TableIdentifier("model"))
    spark.sql("DROP TABLE model")
    changes = {
        "identifier": name,
        "provider": jvm.some("delta"),
        "schema": jvm.struct('{"type":"struct","fields":[]}'),
    }
    catalog.createTable(jvm.static("CaseClass", "with", model, changes), False, False)
    try:
        assert ids(spark.table("old_entry")) == [0, 1]
        spark.sql("INSERT INTO old_entry VALUES (7)")
        assert ids(spark.table("default.old_entry")) == [0, 1, 7]
        assert ids(DeltaTable.forName(spark, "old_entry").toDF()) == [0, 1, 7]
    finally:
        spark.sql("DROP TABLE old_entry")
    assert ids(spark.read.format("delta").load(path)) == [0, 1, 7]


def test_the_catalog_of_the_connector_is_replaced(spark: SparkSession, path: str) -> None:
    """Some notebooks configure the JVM connector's catalog class. Spark cannot load it without the connector, so
    deltalog's catalog is used instead.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    deltalog.spark.enable(session)
    session.range(2).write.format("delta").save(path)
    assert ids(session.sql(f"SELECT * FROM delta.`{path}`")) == [0, 1]


def test_a_session_can_be_without_the_name(spark: SparkSession, path: str) -> None:
    session = spark.newSession()
    session.range(1).write.format("delta").save(path)
    session.conf.set(SETTING, "false")
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):  # Its Java class is unknown to PySpark.
        session.read.format("delta").load(path)
    with pytest.raises(AnalysisException):
        session.sql(f"SELECT * FROM delta.`{path}`")
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):  # Its Java class is unknown to PySpark.
        session.sql("CREATE TABLE unnamed (id BIGINT) USING delta")
    assert ids(session.read.format("deltalog").load(path)) == [0]
    assert ids(spark.read.format("delta").load(path)) == [0]


@pytest.mark.newest
def test_a_python_data_source_keeps_the_name(spark: SparkSession, path: str) -> None:
    class Theirs(DataSource):
        @classmethod
        def name(cls) -> str:
            return "delta"

        def schema(self) -> str:
            return "theirs INT"

    session = spark.newSession()
    spark.conf.set(
        SETTING, "false"
    )  # The name must be free, as it is before `enable`: Spark refuses to register a name that is in use.
    try:
        session.dataSource.register(Theirs)
    finally:
        spark.conf.unset(SETTING)
    assert session.read.format("delta").load(path).columns == ["theirs"]
    with pytest.raises(InvalidArgumentError, match="the format delta is a Python Data Source"):
        deltalog.spark.enable(session, alias_delta=True)


@pytest.mark.newest
@pytest.mark.thorough
def test_enable_turns_the_name_off_for_later_sessions(path: str) -> None:
    done = run_python(
        f"""
        from pyspark.sql import SparkSession
        import deltalog.spark

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = deltalog.spark.enable(builder.getOrCreate(), alias_delta=False)
        spark.range(2).write.format("deltalog").save({path!r})

        def has_name(session):
            try:
                return session.read.format("delta").load({path!r}).count() == 2
            except Exception as error:
                return "DATA_SOURCE_NOT_FOUND" not in str(error)

        print(has_name(spark), has_name(spark.newSession()))
        deltalog.spark.enable(spark)
        print(has_name(spark))
        deltalog.spark.enable(spark, alias_delta=True)
        print(has_name(spark), has_name(spark.newSession()))
        deltalog.spark.enable(spark, alias_delta=False).stop()
        print(has_name(deltalog.spark.enable(builder.getOrCreate())))
        """
    )
    assert done.stdout.split() == ["False", "False", "False", "True", "True", "False"], done.stderr


@pytest.mark.newest
@pytest.mark.thorough
def test_settings_alone_register_the_name(path: str) -> None:
    done = run_python(
        f"""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.jars", {jar()!r})
        spark = builder.config("spark.sql.extensions", "io.deltalog.spark.DeltalogExtensions").getOrCreate()
        spark.range(2).write.format("delta").save({path!r})
        print(spark.newSession().sql("SELECT * FROM delta.`{path}`").count())
        """,
        PYSPARK_PYTHON=sys.executable,
    )
    assert done.stdout.split() == ["2"], done.stderr


# A Java class that registers the format name `delta`, as the JVM connector does.
TAKEN = """
    from pathlib import Path
    from pyspark.sql import SparkSession
    import deltalog.spark
    from deltalog.spark import portable
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    jvm = spark.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler.setParentClassLoader(loader)
    compiler.cook({connector!r})
    directory = Path({directory!r})
    service = directory / "META-INF" / "services" / "org.apache.spark.sql.sources.DataSourceRegister"
    service.parent.mkdir(parents=True)
    service.write_text("Connector")
    (directory / "Connector.class").write_bytes(bytes(compiler.getBytecodes()["Connector"]))

    def owner():
        sources = jvm.org.apache.spark.sql.execution.datasources.DataSource
        return sources.lookupDataSource("delta", spark._jsparkSession.sessionState().conf()).getName()

    def refused(enable):
        try:
            enable(spark, alias_delta=True)
        except deltalog.errors.InvalidArgumentError as error:
            return str(error)

    if {is_late}:
        deltalog.spark.enable(spark)
        print(owner())
    loader.addURL(jvm.java.io.File(str(directory)).toURI().toURL())
    print(refused(deltalog.spark.enable))
    print(refused(portable.enable))
    print("io.deltalog" in spark.conf.get("spark.sql.catalog.spark_catalog", ""))
    table = str(directory / "t")
    deltalog.spark.enable(spark).range(2).write.format("deltalog").save(table)
    print(owner(), spark.read.format("deltalog").load(table).count())
    try:
        spark.sql(f"SELECT * FROM delta.`{{table}}`").collect()
        print("ours")
    except Exception:
        print("not ours")
    spark.stop()
    insisting = SparkSession.builder.config({setting!r}, "true").config("spark.sql.extensions", {extensions!r})
    try:
        insisting.getOrCreate()
    except Exception as error:
        print(str(error).splitlines()[0])
"""
CONNECTOR = """
public class Connector implements org.apache.spark.sql.sources.DataSourceRegister {
  public String shortName() {
    return "delta";
  }
}
"""


@pytest.mark.newest
@pytest.mark.parametrize("is_late", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_another_source_keeps_the_name(tmp_path: Path, is_late: bool) -> None:
    """Another source that registers the name `delta` keeps it, even if its jar is added later."""
    given = {"connector": CONNECTOR, "directory": str(tmp_path), "setting": SETTING, "extensions": OURS}
    done = run_python(TAKEN.format(**given, is_late=is_late))
    lines = done.stdout.splitlines()
    assert len(lines) == 6 + is_late, done.stderr
    *early, native, portable, enabled, used, path, by_setting = lines
    assert early == (["io.deltalog.spark.DeltaAlias"] if is_late else [])
    assert "the format delta is Connector, from the JVM connector or another package" in native
    assert native.startswith("alias_delta=True is not possible")
    assert by_setting.endswith(native.replace("alias_delta=True", f"{SETTING}=true"))
    assert "the format delta of this session belongs to another source" in portable
    assert enabled == str(is_late)
    assert (used, path) == ("Connector 2", "not ours")
