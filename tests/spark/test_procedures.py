"""SQL statements that Spark's own grammar does not have, and procedures."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable, InvalidArgumentError, NotATableError, UnsupportedFeatureError
from deltalog.errors import AfterCommitError
from deltalog.spark import tables
from deltalog.spark.jvm import Jvm
from tests.spark.session_kinds import with_other_extensions


@pytest.fixture
def table(spark: SparkSession, path: str) -> Iterator[str]:
    """Creates a table with two versions at `path`, and returns its name."""
    spark.sql(f"CREATE TABLE p (a INT, b STRING) USING deltalog LOCATION '{path}'")
    spark.sql("INSERT INTO p VALUES (1, 'x')")
    yield "p"
    spark.sql("DROP TABLE p")


def test_history_and_detail_have_the_rows_of_the_verbs(spark: SparkSession, path: str, table: str) -> None:
    verbs = tables.DeltaTable.forPath(spark, path)
    for name in (table, f"spark_catalog.default.`{table}`", f"deltalog.`{path}`", f"deltalog.`file:{path}`"):
        found = spark.sql(f"DESCRIBE HISTORY {name}")
        assert (found.schema, found.collect()) == (verbs.history().schema, verbs.history().collect()), name
        assert spark.sql(f"desc history {name} limit 1").collect() == verbs.history(1).collect()
        detail = spark.sql(f"DESCRIBE DETAIL {name}")
        assert (detail.schema, detail.collect()) == (verbs.detail().schema, verbs.detail().collect()), name
    escaped = spark.sql(f"DESCRIBE DETAIL '{path}'").collect()
    assert escaped == verbs.detail().collect()
    commented = f"/* one\n */ -- two\n DESCRIBE /* three */ HISTORY\n{table} -- four\n LIMIT 1 ;"
    assert len(spark.sql(commented).collect()) == 1


def test_parameters(spark: SparkSession, table: str) -> None:
    limited = "DESCRIBE HISTORY p LIMIT"
    for found in (
        spark.sql(f"{limited} :n", args={"n": 1}),
        spark.sql(f"{limited} ?", args=[1]),
        spark.sql("CALL deltalog.history(:t, limit => :n)", args={"t": table, "n": 1}),
    ):
        assert [row.version for row in found.collect()] == [1]
    spark.conf.set("test.table", table)
    try:
        assert spark.sql("DESCRIBE HISTORY ${test.table}").count() == 2
    finally:
        spark.conf.unset("test.table")
    assert spark.sql("SELECT :n AS n", args={"n": 1}).collect() == [(1,)]


def test_errors_of_caches_name_the_version_that_was_committed(
    spark: SparkSession, path: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    static = Jvm.static

    def failing(jvm: Jvm, name: str, method: str, *arguments: Any) -> Any:
        if (name, method) == ("CachedTables", "refresh"):
            raise OSError("there is no memory")
        return static(jvm, name, method, *arguments)

    monkeypatch.setattr(Jvm, "static", failing)
    changes: list[Callable[[], Any]] = [
        lambda: spark.sql(f"ALTER TABLE {table} ADD COLUMN c INT"),
        lambda: spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 0"),
        lambda: tables.DeltaTable.forPath(spark, path).restoreToVersion(1),
    ]
    for version, change in enumerate(changes, 2):
        with pytest.raises(AfterCommitError, match=rf"version {version} .* was committed.*no memory"):
            change()
    # The newest version is already 4, so this RESTORE commits nothing, and the error is not about a commit.
    with pytest.raises(OSError, match="no memory") as caught:
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 4")
    assert not isinstance(caught.value, AfterCommitError)


def test_explain_does_not_execute(spark: SparkSession, path: str, table: str) -> None:
    for statement in (
        "DESCRIBE HISTORY p",
        "ALTER TABLE p DROP FEATURE appendOnly",
        "CALL deltalog.add_feature_support('p', 'deletionVectors')",
    ):
        for mode in ("", "EXTENDED", "FORMATTED"):
            [row] = spark.sql(f"EXPLAIN {mode} {statement}").collect()
            assert "Call spark_catalog.deltalog." in row.plan
    assert DeltaTable(path).version() == 1


def test_constraints_and_features(spark: SparkSession, path: str, table: str) -> None:
    assert spark.sql("ALTER TABLE p ADD CONSTRAINT `one` CHECK (b <> ')' AND\n (a > 0))").collect() == []
    with pytest.raises(InvalidArgumentError, match="'one'"):
        spark.sql("INSERT INTO p VALUES (0, 'y')")
    spark.sql("ALTER TABLE p DROP CONSTRAINT one")
    spark.sql("ALTER TABLE p DROP CONSTRAINT IF EXISTS one")
    spark.sql("INSERT INTO p VALUES (0, 'y')")
    assert spark.sql("CALL deltalog.add_feature_support('p', 'deletionVectors')").collect() == [(5,)]
    assert spark.sql(f"ALTER TABLE deltalog.`{path}` DROP FEATURE deletionVectors").columns == []
    spark.sql("CALL deltalog.add_feature_support('p', feature => 'v2Checkpoint')")
    spark.sql("ALTER TABLE p DROP FEATURE 'v2Checkpoint' TRUNCATE HISTORY")
    history = DeltaTable(path).history()
    assert [commit["operation"] for commit in history][2:-2] == [
        "DROP FEATURE",
        "UPGRADE PROTOCOL",
        "WRITE",
        "DROP CONSTRAINT",
        "ADD CONSTRAINT",
    ]
    truncates = [commit["operationParameters"]["truncateHistory"] for commit in (history[0], history[2])]
    assert truncates == [True, False]
    protocol = DeltaTable(path).protocol()
    assert not {"deletionVectors", "v2Checkpoint"} & set(protocol.writer_features or [])


def test_checkpoint(spark: SparkSession, path: str, table: str) -> None:
    assert spark.sql("CALL spark_catalog.deltalog.checkpoint(table => 'default.p')").collect() == [(1,)]
    assert Path(path, "_delta_log/00000000000000000001.checkpoint.parquet").exists()


def test_other_statements_are_sparks(spark: SparkSession, table: str) -> None:
    """All other statements are left to Spark's parser. A table can have the name of one of deltalog's keywords, and
    syntax errors keep their positions.
    """
    spark.sql("CREATE TABLE history (id INT) USING parquet")
    try:
        assert spark.sql("DESCRIBE history").collect()[0].col_name == "id"
        assert spark.sql("DESCRIBE TABLE history id").collect()[0].info_name == "col_name"
        assert spark.sql("DESCRIBE default.history").collect()[0].col_name == "id"
        with pytest.raises(
            InvalidArgumentError, match="history is not a Delta table: its provider is parquet"
        ):
            spark.sql("DESCRIBE DETAIL history")
        with pytest.raises(InvalidArgumentError, match="provider is parquet"):
            spark.sql("ALTER TABLE history DROP FEATURE x")
    finally:
        spark.sql("DROP TABLE history")
    for text, position in {
        "DESCRIBE HISTORY p LIMIT x": "pos 19",
        "ALTER TABLE p DROP FEATURE": "pos",
        "ALTER TABLE p ADD CONSTRAINT c CHECK a > 0": "pos",
        "SELEC 1": "pos 0",
        "ALTER TABLE p ADD CONSTRAINT c CHECK (a >)": "pos",
    }.items():
        with pytest.raises(ParseException, match=position):
            spark.sql(text)


def test_other_objects_are_not_treated_as_tables(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("DESCRIBE HISTORY nothing")
    spark.range(1).createOrReplaceTempView("view")
    with pytest.raises(InvalidArgumentError, match="view is not a Delta table: it is a temporary view"):
        spark.sql("DESCRIBE HISTORY view")
    with pytest.raises(InvalidArgumentError, match="not in the session catalog"):
        spark.sql("DESCRIBE HISTORY other.db.t")


def test_a_view_is_not_changed(spark: SparkSession, path: str, table: str) -> None:
    spark.sql("CREATE VIEW pv AS SELECT * FROM p WHERE a > 0")
    spark.sql("CREATE OR REPLACE TEMP VIEW tv AS SELECT * FROM p")
    try:
        for view in ("pv", "spark_catalog.default.pv", "tv"):
            for statement in (
                f"ALTER TABLE {view} ADD CONSTRAINT c CHECK (a > 0)",
                f"ALTER TABLE {view} DROP CONSTRAINT c",
                f"ALTER TABLE {view} DROP CONSTRAINT IF EXISTS c",
                f"ALTER TABLE {view} DROP FEATURE appendOnly",
                f"ALTER TABLE {view} CLUSTER BY (a)",
                f"CALL deltalog.add_constraint('{view}', 'c', 'a > 0')",
                f"CALL deltalog.add_feature_support('{view}', 'deletionVectors')",
            ):
                with pytest.raises(AnalysisException, match=r"is a (temporary )?view"):
                    spark.sql(statement)
        assert DeltaTable(path).version() == 1
    finally:
        spark.sql("DROP VIEW pv")
        spark.catalog.dropTempView("tv")


def test_a_constraint_that_rows_violate_says_how_to_find_them(
    spark: SparkSession, path: str, table: str
) -> None:
    for statement in (
        "ALTER TABLE p ADD CONSTRAINT c CHECK (a > 1)",
        "CALL deltalog.add_constraint('p', 'c', 'a > 1')",
    ):
        with pytest.raises(
            PySparkException, match=r"WHERE \(a > 1\) IS NOT TRUE|Please ensure all existing rows"
        ):
            spark.sql(statement)
    assert spark.sql("SELECT a FROM p WHERE (a > 1) IS NOT TRUE").collect() == [(1,)]


def test_relative_paths(spark: SparkSession, path: str, table: str) -> None:
    """Relative paths start in the directory in which Spark was started, as in queries."""
    relative = os.path.relpath(path, Path.cwd())
    for name in (f"deltalog.`{relative}`", f"'{relative}'", f"'./{relative}'"):
        assert spark.sql(f"DESCRIBE HISTORY {name}").count() == 2, name
        assert spark.sql(f"DESCRIBE DETAIL {name}").count() == 1, name
    assert spark.sql(f"CALL deltalog.history('{relative}')").count() == 2
    assert spark.table(f"deltalog.`{relative}`").count() == 1
    with pytest.raises(NotATableError):
        spark.sql("CALL deltalog.history('no/such/table')")


@pytest.mark.parametrize("uri", ["oss://key:secret@bucket/t", "ftp://host/t", "nothing:/t"])
def test_stores_that_are_not_supported_are_named(spark: SparkSession, uri: str) -> None:
    scheme = uri.partition(":")[0]
    for statement in (
        f"DESCRIBE HISTORY deltalog.`{uri}`",
        f"DESCRIBE DETAIL '{uri}'",
        f"CALL deltalog.history('{uri}')",
        f"SELECT * FROM deltalog.`{uri}`",
        f"CREATE TABLE nowhere (a INT) USING deltalog LOCATION '{uri}'",
    ):
        with pytest.raises(UnsupportedFeatureError, match=f"the store '{scheme}' is not supported") as error:
            spark.sql(statement)
        assert "secret" not in str(error.value)
    with pytest.raises(InvalidArgumentError, match="not the path of a table"):
        spark.sql("DESCRIBE HISTORY deltalog.`nothing:t/u`")


def test_wrong_calls_get_suggestions(spark: SparkSession, table: str) -> None:
    for call, error in {
        "CALL deltalog.histori('p')": "no procedure histori: call deltalog.history",
        "CALL nowhere.detail('p')": "deltalog.detail",
        "CALL deltalog.zzz('p')": "drop_feature",
        "CALL deltalog.history(tabel => 'p')": "`table`",
        "CALL deltalog.history()": "(?i)table",
        "CALL deltalog.history(NULL)": "argument table of deltalog.history must be the name or the path",
        "CALL deltalog.history('p', 0)": "at least 1, not 0",
        "CALL deltalog.drop_feature('p', NULL)": "feature of deltalog.drop_feature must not be NULL",
        "CALL deltalog.drop_feature('p', 'nothing')": "nothing",
    }.items():
        with pytest.raises(AnalysisException, match=error):
            spark.sql(call)


def test_procedures_are_listed(spark: SparkSession) -> None:
    if spark.version.startswith("4.0."):
        with pytest.raises(ParseException):
            spark.sql("SHOW PROCEDURES IN deltalog")
        return
    listed = [row.procedure_name for row in spark.sql("SHOW PROCEDURES IN deltalog").collect()]
    assert {"history", "detail", "checkpoint", "drop_feature"} <= set(listed)


def test_sessions_and_threads(spark: SparkSession, table: str) -> None:
    """The statements also work in new sessions, which have their own parsers, and in other threads."""
    other = spark.newSession()
    assert other.sql("CALL deltalog.detail('p')").count() == 1
    parser = other._jsparkSession.sessionState().sqlParser()
    deltalog.spark.enable(other)
    assert other._jsparkSession.sessionState().sqlParser().equals(parser)
    found: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(other.sql("DESCRIBE HISTORY p LIMIT 1").collect()[0].version)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4


def test_a_session_without_our_parser_warns(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session without deltalog's parser shows a warning. Procedures still work, because the catalog provides them."""
    static = Jvm.static

    def without_parser(jvm: Jvm, name: str, *arguments: Any) -> Any:
        return "no field sqlParser" if name == "StatementParser" else static(jvm, name, *arguments)

    monkeypatch.setattr(Jvm, "static", without_parser)
    other = with_other_extensions(spark)
    other.range(1).collect()
    with pytest.warns(RuntimeWarning, match="no field sqlParser.*DESCRIBE HISTORY") as caught:
        deltalog.spark.enable(other)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(ParseException):
        other.sql("ALTER TABLE p DROP FEATURE appendOnly")
    assert other.sql("CALL deltalog.history('p', limit => 1)").collect()[0].version == 1
