"""Tests `deltalog.spark.enable`: sessions, user-defined catalogs, errors that users see, interrupts, and missing
requirements.
"""

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import InvalidArgumentError, NotATableError
from deltalog.spark import secrecy
from deltalog.spark.errors import DeltaError
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.jars import PACKAGE
from tests.spark.processes import run_python
from tests.spark.session_kinds import with_other_extensions, without_us

HIDDEN = "spark.sql.redaction.options.regex"


def ids(frame: DataFrame) -> list[int]:
    """Returns the sorted ids, which are read from the data files. A count could come from the log instead."""
    return sorted(row.id for row in frame.collect())


def test_enable_can_be_called_twice(spark: SparkSession, path: str) -> None:
    assert deltalog.spark.enable(spark) is spark
    spark.range(2).write.format("deltalog").save(path)
    assert ids(spark.read.format("deltalog").load(path)) == [0, 1]


def parts_of_ours(spark: SparkSession) -> list[str]:
    """Returns the names of deltalog's classes that take part in a session's planning."""
    state = spark._jsparkSession.sessionState()
    analyzer, experimental = state.analyzer(), spark._jsparkSession.experimental()
    jvm = Jvm(spark.sparkContext._gateway)
    lists = [
        analyzer.hintResolutionRules(),
        analyzer.extendedResolutionRules(),
        analyzer.postHocResolutionRules(),
        state.planner().strategies(),
        experimental.extraOptimizations(),
    ]
    found = [part.getClass().getName() for parts in lists for part in jvm.sequence(parts)]
    return [name.removeprefix(f"{PACKAGE}.") for name in found if name.startswith(PACKAGE)]


def test_every_session_has_each_part_once(spark: SparkSession) -> None:
    used = with_other_extensions(spark)
    used.range(1).collect()
    deltalog.spark.enable(used)
    jvm_session = spark._jsparkSession
    copies = [SparkSession(spark.sparkContext, jvm_session.cloneSession()) for _ in range(2)]
    expected = parts_of_ours(spark)
    assert len(set(expected)) == len(expected)
    assert {"EvolvingMerges", "StatementRule", "DeltalogStrategy", "PrunedSizes"} <= set(expected)
    for session in (spark.newSession(), *copies, deltalog.spark.enable(copies[0]), used, used.newSession()):
        assert parts_of_ours(session) == expected
        parser = session._jsparkSession.sessionState().sqlParser()
        assert "StatementParser" in spark._jvm.java.lang.reflect.Proxy.getInvocationHandler(parser).toString()  # type: ignore[union-attr]


@pytest.mark.newest
def test_plans_hide_options_that_may_be_secrets(spark: SparkSession) -> None:
    other = spark.newSession()
    other.range(1).collect()
    pattern = other.conf.get(HIDDEN)
    # Spark's own redaction pattern is kept, and deltalog's is added only once.
    assert pattern == f"(?i)url|{secrecy._HIDDEN}"
    deltalog.spark.enable(other)
    assert other.conf.get(HIDDEN) == pattern
    names = ("endpoint_url", "aws_access_key_id", "azure_storage_account_key", "fs.azure.account.key.lake")
    shown = ("aws_region", "primary_key", "path")
    for name in (*names, *shown):
        matches = other._jvm.java.util.regex.Pattern.compile(pattern).matcher(name).find()  # type: ignore[union-attr]
        assert matches == (name in names), name
    other.conf.set(HIDDEN, "mine")
    deltalog.spark.enable(other)
    assert str(other.conf.get(HIDDEN)).startswith("mine|")


def test_new_sessions_read_and_write(spark: SparkSession, path: str) -> None:
    other = spark.newSession()
    spark.range(2).write.format("deltalog").save(path)
    assert ids(other.sql(f"SELECT * FROM deltalog.`{path}`")) == [0, 1]
    other.sql(f"INSERT INTO deltalog.`{path}` VALUES (7)")
    assert ids(spark.table(f"deltalog.`{path}`")) == [0, 1, 7]
    late = without_us(spark)  # The name of the format is registered for the whole application.
    assert ids(late.read.format("deltalog").load(path)) == [0, 1, 7]


def test_new_sessions_replace_a_table_by_a_version(spark: SparkSession) -> None:
    """In a new session, replacing a table adds a version. Without deltalog's catalog, Spark would drop the table
    first.
    """
    replacements: tuple[Callable[[DataFrame], Any], ...] = (
        lambda rows: rows.write.format("deltalog").mode("overwrite").saveAsTable("of_new"),
        lambda rows: rows.sparkSession.sql(
            "CREATE OR REPLACE TABLE of_new USING deltalog AS SELECT 3L AS id"
        ),
        lambda rows: rows.writeTo("of_new").using("deltalog").createOrReplace(),
    )
    for replace in replacements:
        spark.range(2).write.format("deltalog").saveAsTable("of_new")
        try:
            replace(spark.newSession().range(3, 4))
            assert ids(spark.table("of_new")) == [3]
            assert ids(spark.sql("SELECT * FROM of_new VERSION AS OF 0")) == [0, 1]
        finally:
            spark.sql("DROP TABLE of_new")


def test_other_formats_cannot_replace_a_table(spark: SparkSession, path: str) -> None:
    spark.range(2).write.format("deltalog").option("path", path).saveAsTable("of_ours")
    rows = spark.range(1).write.mode("overwrite")
    try:
        with pytest.raises(
            InvalidArgumentError, match=r"of_ours is a Delta table.*parquet.*format\('deltalog'\)"
        ):
            rows.saveAsTable("of_ours")
        for directory in (path, f"{path}/p=1", f"{path}/ab", f"{path}/_delta_log/_sidecars"):
            with pytest.raises(InvalidArgumentError, match="belongs to the Delta table"):
                rows.parquet(directory)
        with pytest.raises(InvalidArgumentError, match="belongs to the Delta table"):
            spark.sql(f"INSERT OVERWRITE DIRECTORY '{path}' USING json SELECT 1 AS id")
        assert ids(spark.table("of_ours")) == [0, 1]
        # Other directories are not checked.
        for directory in (
            f"{path} beside",
            f"{path}/_staging",
            f"{path}/.exports",
            f"{path}/_staging/p=1",
            f"{path}/of others",
        ):
            rows.parquet(directory)
        assert ids(spark.table("of_ours")) == [0, 1]
    finally:
        spark.sql("DROP TABLE of_ours")


def test_a_table_is_found_with_the_options_of_a_write(spark: SparkSession, path: str) -> None:
    """The options of a write are used to find out whether there is a table. In this test they determine where the
    directory is; usually, they contain the keys of a store.
    """
    spark.range(2).write.format("deltalog").save(path)
    rows = spark.range(1).write.mode("overwrite").option("fs.viewfs.impl.disable.cache", "true")
    rows = rows.option("fs.viewfs.mounttable.theirs.link./lake", Path(path).parent.as_uri())
    with pytest.raises(InvalidArgumentError, match="belongs to the Delta table"):
        rows.parquet(f"viewfs://theirs/lake/{Path(path).name}")
    rows.parquet("viewfs://theirs/lake/other")
    assert ids(spark.read.format("deltalog").load(path)) == [0, 1]


def test_several_threads_read_at_once(spark: SparkSession, path: str) -> None:
    spark.range(2).write.format("deltalog").save(path)
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(ids(spark.read.format("deltalog").load(path))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[0, 1]] * 4


def compiled_catalog(spark: SparkSession, directory: Path) -> str:
    """Compiles a catalog class, loads it as if it came from a user's jar, and returns its name."""
    jvm: Any = spark.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler.setParentClassLoader(loader)
    compiler.cook(
        "package theirs; public class Theirs "
        "extends org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension {}"
    )
    target = directory / "theirs" / "Theirs.class"
    target.parent.mkdir()
    target.write_bytes(bytes(compiler.getBytecodes()["theirs.Theirs"]))
    loader.addURL(jvm.java.io.File(str(directory)).toURI().toURL())
    return "theirs.Theirs"


def test_the_users_catalog_is_kept(spark: SparkSession, path: str, tmp_path: Path) -> None:
    session = spark.newSession()
    name = "spark.sql.catalog.spark_catalog"
    theirs = compiled_catalog(spark, tmp_path)
    session.conf.set(name, theirs)
    with pytest.warns(RuntimeWarning, match="spark_catalog is set to") as caught:
        deltalog.spark.enable(session)
    assert [warning.filename for warning in caught] == [__file__]
    assert session.conf.get(name) == theirs
    session.range(2).write.format("deltalog").save(path)
    assert ids(session.read.format("deltalog").load(path)) == [0, 1]
    for statement in (f"DESCRIBE HISTORY deltalog.`{path}`", f"CALL deltalog.history('{path}')"):
        assert [row.version for row in session.sql(statement).collect()] == [0]


def test_a_catalog_of_the_user_loses_no_table(spark: SparkSession, path: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE of_both USING deltalog LOCATION '{path}' AS SELECT 1 AS id")
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", compiled_catalog(spark, tmp_path))
    rows = session.range(1)
    jvm: Any = spark.sparkContext._jvm
    changes: dict[str, Callable[[], Any]] = {
        "overwrite": lambda: rows.write.format("deltalog").mode("overwrite").saveAsTable("of_both"),
        "replace": lambda: rows.writeTo("of_both").using("deltalog").createOrReplace(),
        "AS": lambda: session.sql("CREATE OR REPLACE TABLE of_both USING deltalog AS SELECT 2 AS id"),
        "new": lambda: session.sql("CREATE TABLE of_both_too (id INT) USING deltalog"),
        "alter": lambda: session.sql("ALTER TABLE of_both ADD COLUMN n INT"),
        "without": lambda: rows.write.mode("overwrite").saveAsTable("of_both"),
    }
    try:
        # `saveAsTable` uses the settings of the active session.
        jvm.SparkSession.setActiveSession(session._jsparkSession)
        for name, change in changes.items():
            with pytest.raises(DeltaError, match=r"set to theirs\.Theirs|not supported yet|format parquet"):
                change()
            assert ids(spark.table("of_both")) == [1], name
        assert not spark.catalog.tableExists("of_both_too")
    finally:
        jvm.SparkSession.setActiveSession(spark._jsparkSession)
        spark.sql("DROP TABLE of_both")


def test_enabling_raises_no_warning(spark: SparkSession) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deltalog.spark.enable(spark.newSession())


def test_missing_tables_are_reported_without_a_java_stack_trace(spark: SparkSession, path: str) -> None:
    for read in (
        lambda: spark.read.format("deltalog").load(path),
        lambda: spark.table(f"deltalog.`{path}`").count(),
    ):
        with pytest.raises(NotATableError, match="no Delta table") as caught:
            read()
        assert "a%20table" in str(caught.value)
        assert "at org.apache" not in str(caught.value)


def test_invalid_options_are_refused(spark: SparkSession, path: str) -> None:
    spark.range(2).write.format("deltalog").save(path)
    for name, value in {
        "versionAsOf": "one",
        "timestampAsOf": "yesterday-ish",
        "readChangeFeed": "true",
    }.items():
        with pytest.raises(DeltaError, match=f"(?i){name}"):
            spark.read.format("deltalog").option(name, value).load(path)
    with pytest.raises(DeltaError, match="path"):
        spark.read.format("deltalog").load()
    with pytest.raises(DeltaError, match="schema"):
        spark.read.schema("z int").format("deltalog").load(path)


@pytest.mark.slow
def test_a_cluster_reads_and_an_interrupted_write_is_not_committed(path: str) -> None:
    done = run_python(
        f"""
        import os, signal, threading, time
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
        spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1").getOrCreate()
        import deltalog.spark
        deltalog.spark.enable(spark)
        path = {path!r}
        rows = lambda count: spark.range(0, count, numPartitions=2).selectExpr("id", "id % 2 AS p")
        rows(6).write.format("deltalog").partitionBy("p").save(path)
        table = lambda: spark.read.format("deltalog").load(path)
        print("rows", sorted(row.id for row in table().where("p = 1").collect()))

        def interrupt():
            while not spark.sparkContext.statusTracker().getActiveJobsIds():
                time.sleep(0.1)
            time.sleep(1)  # The rows are sorted by partition first, so there is no file yet.
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        try:
            rows(10**12).write.format("deltalog").mode("append").save(path)
            print("finished")
        except KeyboardInterrupt:
            print("interrupted")
        print("rows", sorted(row.id for row in table().collect()))
        """
    )
    assert done.stdout.splitlines() == ["rows [1, 3, 5]", "interrupted", "rows [0, 1, 2, 3, 4, 5]"], (
        done.stderr
    )
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in Path(path, "_delta_log").glob("*.json")) == [
        "00000000000000000000.json"
    ]


def test_missing_java_is_reported() -> None:
    done = run_python(
        """
        import deltalog, deltalog.spark
        from pyspark.sql import SparkSession
        try:
            SparkSession.builder.getOrCreate()
        except deltalog.DeltaError as error:
            print(error)
        """,
        JAVA_HOME="/nonexistent",
    )
    assert "JAVA_HOME is /nonexistent" in done.stdout, done.stderr
    assert "install openjdk" in done.stdout


@pytest.mark.parametrize(
    ("module", "wanted"),
    [("raise ImportError('no')", "not installed"), ("__version__ = '3.5.1'", "3.5.1 is installed")],
)
def test_missing_and_old_pyspark_are_reported(tmp_path: Path, module: str, wanted: str) -> None:
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").write_text(module)
    done = run_python(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport deltalog.spark")
    assert done.returncode != 0
    assert "pip install 'pyspark>=4'" in done.stderr
    assert wanted in done.stderr
