"""DELETE, UPDATE and MERGE: their commits, the table after a failure or a refusal, and the files that they read."""

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import deltalog.spark
import deltalog.tables
from deltalog import CommitConflictError, DeltaTable, InvalidArgumentError, UnsupportedFeatureError
from tests.spark.statement_tables import (
    FAILING,
    KINDS,
    OLD,
    check,
    created,
    files,
    in_one_task,
    rows,
)

SparkTable = deltalog.tables.DeltaTable


@pytest.mark.parametrize("kind", ["tracked with vectors", "tracked"])
def test_rows_keep_their_ids(spark: SparkSession, path: str, kind: str) -> None:
    """Rows keep their row ids. The row commit version of a changed row is the new version, and copied rows keep
    theirs. (PROTOCOL.md, "Row Tracking".)
    """
    table = created(spark, path, kind)

    def tracked() -> dict[Any, tuple[int, int]]:
        found = spark.sql(
            f"SELECT id, s, _metadata.row_id, _metadata.row_commit_version FROM {table}"
        ).collect()
        return {(row.id, row.s): (row.row_id, row.row_commit_version) for row in found}

    before = tracked()
    spark.sql(f"UPDATE {table} SET p = 5 WHERE id % 10 = 4")
    after = tracked()
    assert {key: row_id for key, (row_id, _) in after.items()} == {
        key: row_id for key, (row_id, _) in before.items()
    }
    assert {version for (i, _), (_, version) in after.items() if i is not None and i % 10 == 4} == {1}
    assert {version for (i, _), (_, version) in after.items() if i is None or i % 10 != 4} == {0}
    spark.sql(f"DELETE FROM {table} WHERE id % 10 = 5")
    kept = tracked()
    assert kept == {key: ids for key, ids in after.items() if key[0] is None or key[0] % 10 != 5}
    assert len({row_id for row_id, _ in kept.values()}) == len(kept)


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_a_statement_that_fails_leaves_nothing(spark: SparkSession, path: str, kind: str) -> None:
    table = created(spark, path, kind)
    before = files(path)
    with in_one_task(spark), pytest.raises(Exception, match="boom"):
        spark.sql(f"UPDATE {table} SET s = {FAILING} WHERE id >= 250")
    assert DeltaTable(path).version() == 0
    assert files(path) == before
    check(spark, path, OLD)


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_rows_that_break_a_rule_fail_the_statement(spark: SparkSession, path: str, kind: str) -> None:
    """(PROTOCOL.md, "CHECK Constraints", "Generated Columns", "Column Invariants".)"""
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in KINDS[kind][0].items()) or "'a' = 'b'"
    spark.sql(
        f"CREATE TABLE ruled (id LONG NOT NULL, twice LONG GENERATED ALWAYS AS (id * 2), s VARCHAR(5)) "
        f"USING deltalog TBLPROPERTIES ({properties}) LOCATION '{path}'"
    )
    try:
        spark.sql("INSERT INTO ruled (id, s) SELECT id, 's' FROM range(10)")
        DeltaTable(path).alter.add_constraint({"small": "id < 100"})
        for statement, words in (
            ("UPDATE ruled SET id = 200 WHERE id = 3", "the constraint 'small'.*id = 200"),
            ("UPDATE ruled SET id = NULL WHERE id = 3", "(?i)null"),
            ("UPDATE ruled SET s = 'too long' WHERE id = 3", "(?i)length|exceed"),
            ("UPDATE ruled SET twice = 7 WHERE id = 3", "generated column 'twice'"),
            (
                "MERGE INTO ruled USING (SELECT 300L AS k) s ON id = k WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
                "the constraint 'small'.*id = 300",
            ),
        ):
            with pytest.raises(Exception, match=words):
                spark.sql(statement)
        version = DeltaTable(path).version()
        spark.sql("UPDATE ruled SET id = id + 50 WHERE id = 3")
        spark.sql(
            "MERGE INTO ruled USING (SELECT 60L AS k) s ON id = k WHEN NOT MATCHED THEN INSERT (id, s) VALUES (k, 'n')"
        )
        # Rows that are deleted need not satisfy the constraints.
        spark.sql("MERGE INTO ruled USING (SELECT 1L AS k) s ON id = k WHEN MATCHED THEN DELETE")
        assert DeltaTable(path).version() == version + 3
        found = pa.table(DeltaTable(path).to_arrow(columns=["id", "twice"])).to_pydict()
        assert sorted(zip(found["id"], found["twice"], strict=True)) == [
            (i, 2 * i) for i in (0, 2, 4, 5, 6, 7, 8, 9, 53, 60)
        ]
    finally:
        spark.sql("DROP TABLE ruled")


def test_only_tables_are_changed(spark: SparkSession, path: str) -> None:
    """Only tables can be changed, not views, which may filter rows or compute columns."""
    table = created(spark, path, "vectors")
    for view in (
        "SELECT * FROM {} WHERE id < 10",
        "SELECT id + 1 AS id, p, s FROM {}",
        "SELECT p AS id, id AS p FROM {}",
    ):
        spark.sql(view.format(table)).createOrReplaceTempView("shown")
        for statement in (
            "DELETE FROM shown",
            "UPDATE shown SET p = 1",
            "MERGE INTO shown t USING (SELECT 1 AS k) ON t.id = k WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises(UnsupportedFeatureError, match="not of a view"):
                spark.sql(statement)
    check(spark, path, OLD)
    assert DeltaTable(path).version() == 0


def test_statements_answer_how_many_rows_they_have_changed(spark: SparkSession, path: str) -> None:
    table = created(spark, path, "vectors")
    assert spark.sql(f"DELETE FROM {table} WHERE id < 5").collect()[0].asDict() == {"num_affected_rows": 5}
    assert spark.sql(f"UPDATE {table} SET p = 0 WHERE id < 5").collect()[0].num_affected_rows == 0
    merge = spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM range(3, 8)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 5 THEN DELETE WHEN MATCHED AND s.id = 6 THEN UPDATE SET p = 9 "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 1)"
    )
    assert merge.collect()[0].asDict() == {
        "num_affected_rows": 5,
        "num_updated_rows": 1,
        "num_deleted_rows": 1,
        "num_inserted_rows": 3,
    }


def test_what_cannot_be_done_is_refused_by_name(spark: SparkSession, path: str) -> None:
    table = created(spark, path, "vectors")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(InvalidArgumentError, match=r"delta\.appendOnly"):
        spark.sql(f"DELETE FROM {table} WHERE id = 2")
    check(spark, path, [row for row in OLD if row[0] != 1])


@pytest.mark.parametrize("kind", ["vectors", "rewriting", "partitions"])
def test_files_whose_rows_are_all_deleted_are_removed_unread(
    spark: SparkSession, path: str, kind: str
) -> None:
    """If partition values or statistics show that all rows of a file are deleted, the file is removed without being
    read. (PROTOCOL.md, "Remove File".)
    """
    table = created(spark, path, kind)
    for file in Path(path).rglob("*.parquet"):
        file.write_bytes(b"not read")
    done = spark.sql(f"DELETE FROM {table} WHERE p >= 0 AND p < 3").collect()
    assert [row.num_affected_rows for row in done] == [len(OLD)]
    assert rows(path) == []
    metrics = DeltaTable(path).history(1)[0]["operationMetrics"]
    assert int(metrics["numDeletedRows"]) == len(OLD)
    assert int(metrics["numAddedFiles"]) == int(metrics["numCopiedRows"]) == 0


def test_a_condition_that_changes_its_mind_changes_nothing(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    """An UPDATE that rewrites files evaluates its condition twice: to find the files, and to write them. If the
    results differ, the UPDATE fails.
    """
    table = created(spark, path, "rewriting")
    before = files(path)
    seen = tmp_path / "seen"

    def once(number: int) -> bool:
        if seen.exists():
            return False
        seen.touch()
        return True

    spark.udf.register("once", once, "boolean")
    try:
        with pytest.raises(InvalidArgumentError, match="different values when it is evaluated again"):
            spark.sql(f"UPDATE {table} SET s = 'x' WHERE id = 5 AND once(id)")
    finally:
        spark.sql("DROP TEMPORARY FUNCTION once")
    assert files(path) == before
    check(spark, path, OLD)


def test_explain_changes_nothing(spark: SparkSession, path: str) -> None:
    table = created(spark, path, "vectors")
    for statement in (
        f"DELETE FROM {table} WHERE id = 1",
        f"UPDATE {table} SET s = 'x'",
        f"MERGE INTO {table} t USING (SELECT * FROM range(9)) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ):
        spark.sql(f"EXPLAIN {statement}").collect()
    check(spark, path, OLD)
    assert DeltaTable(path).version() == 0


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_a_few_keys_open_few_files(
    spark: SparkSession, path: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    properties = KINDS[kind][0]
    data = spark.range(0, 2000, numPartitions=100).selectExpr("id", "CAST(id % 3 AS INT) AS p", "'s' AS s")
    data.write.format("deltalog").options(**properties).save(path)
    table = f"deltalog.`{path}`"
    spark.createDataFrame([(10,), (11,), (990,), (9999,)], "k long").createOrReplaceTempView("source")
    with caplog.at_level(logging.INFO, "deltalog.spark"):
        spark.sql(
            f"MERGE INTO {table} t USING source ON t.id = k WHEN MATCHED THEN UPDATE SET s = 'm' "
            "WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (k, 0, 'new')"
        )
        spark.sql(f"DELETE FROM {table} WHERE id BETWEEN 41 AND 58")
    found = [record.getMessage() for record in caplog.records if "looks for rows" in record.getMessage()]
    assert ["MERGE looks for rows in 2 of 100 files" in found[0], "in 1 of" in found[1]] == [True, True], (
        found
    )
    expected = [(i, i % 3, "m" if i in (10, 11, 990) else "s") for i in range(2000) if not 41 <= i < 59]
    check(spark, path, [*expected, (9999, 0, "new")])


def test_statements_on_different_rows_of_a_file_both_commit(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two statements on different rows of a file both succeed. If they change the same row, exactly one of them
    succeeds.
    """
    table = created(spark, path, "vectors")
    # The first statement reads the table before the second statement commits.
    meet = threading.Barrier(2, timeout=60)
    outcomes: list[Exception | None] = []

    def run(statement: str) -> None:
        try:
            spark.sql(statement)
            outcomes.append(None)
        except Exception as error:  # noqa: BLE001 (compared below)
            outcomes.append(error)

    from deltalog.spark.dml.statement import Statement

    planned = Statement.planned

    def paused(statement: Any, filters: Any) -> Any:
        found = planned(statement, filters)
        if "20" in str(statement.text.predicate):
            meet.wait()
            meet.wait()
        return found

    monkeypatch.setattr(Statement, "planned", paused)
    for other, conflicts in (("id = 21", False), ("id = 22", True)):
        outcomes.clear()
        first = threading.Thread(target=run, args=(f"UPDATE {table} SET s = 'first' WHERE id IN (20, 22)",))
        first.start()
        meet.wait()
        spark.sql(f"UPDATE {table} SET s = 'second' WHERE {other}")
        meet.wait()
        first.join()
        [outcome] = outcomes
        assert isinstance(outcome, CommitConflictError) if conflicts else outcome is None, outcome
        if conflicts:
            assert "row" in str(outcome)
    expected = {20: "first", 21: "second", 22: "second"}
    check(spark, path, [(i, p, expected.get(i or 0, s)) for i, p, s in OLD])


def test_the_history_says_what_was_done(spark: SparkSession, path: str) -> None:
    table = created(spark, path, "vectors")
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "why")
    try:
        spark.sql(f"DELETE FROM {table} WHERE id = 1 AND p < 5")
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM range(3)) s ON t.id = s.id WHEN MATCHED AND t.p = 2 THEN DELETE"
    )
    merge, delete = DeltaTable(path).history(2)
    assert (delete["operation"], delete["userMetadata"]) == ("DELETE", "why")
    assert "id = 1" in delete["operationParameters"]["predicate"]
    assert merge["operation"] == "MERGE"
    assert '"actionType":"delete"' in merge["operationParameters"]["matchedPredicates"]
    assert merge["engineInfo"].startswith("Apache-Spark/")


def test_wrong_statements_are_analysis_errors(spark: SparkSession, path: str) -> None:
    table = created(spark, path, "vectors")
    for statement in (
        f"DELETE FROM {table} WHERE nothing = 1",
        f"UPDATE {table} SET nothing = 1",
        f"UPDATE {table} SET id = 'x' || s",
        f"DELETE FROM {table} WHERE rand() < 0.5",
    ):
        with pytest.raises(PySparkException):
            spark.sql(statement)
    check(spark, path, OLD)


def test_a_statement_that_its_application_has_recorded_runs_no_job(spark: SparkSession, path: str) -> None:
    """(PROTOCOL.md, "Transaction Identifiers".)"""
    table = created(spark, path, "rewriting")
    merge = f"MERGE INTO {table} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = p + 1"
    settings = {
        "spark.databricks.delta.write.txnAppId": "job",
        "spark.databricks.delta.write.txnVersion": "7",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    context: Any = spark.sparkContext  # PySpark's type hint does not allow None, which removes a property.
    tracker = context.statusTracker()
    try:
        for round_, statement in enumerate(
            (merge, merge, f"UPDATE {table} SET p = 1", f"DELETE FROM {table}")
        ):
            group = f"recorded {round_}"
            context.setJobGroup(group, "")
            affected = spark.sql(statement).collect()[0].num_affected_rows
            assert (affected, bool(tracker.getJobIdsForGroup(group))) == (
                (1, True) if round_ == 0 else (0, False)
            )
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        for name in settings:
            spark.conf.unset(name)
    assert DeltaTable(path).version() == 1
    check(spark, path, [(i, p + 1 if i == 1 else p, s) for i, p, s in OLD])


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
@pytest.mark.parametrize("feed", ["false", "true"])
def test_rows_that_a_merge_inserts_get_new_identities(
    spark: SparkSession, path: str, kind: str, feed: str
) -> None:
    """Rows that a MERGE inserts get new identity values. Changed and copied rows keep their values, and do not change
    the high water mark. (PROTOCOL.md, "Identity Columns".)
    """
    properties = {**KINDS[kind][0], "delta.enableChangeDataFeed": feed}
    given = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (i LONG GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY 10), "
        "d LONG GENERATED BY DEFAULT AS IDENTITY, v INT, twice LONG GENERATED ALWAYS AS (i * 2)) USING deltalog "
        f"TBLPROPERTIES ({given})"
    )
    spark.sql(f"INSERT INTO {table} (d, v) SELECT /*+ COALESCE(1) */ 1000 + id, id FROM range(4)")
    before = {row["v"]: row for row in DeltaTable(path).to_pyarrow_table().to_pylist()}
    merge = (
        f"MERGE INTO {table} t USING (SELECT CAST(id + 2 AS INT) AS v FROM range(0, 6, 1, 3)) s ON t.v = s.v "
        "WHEN MATCHED AND s.v = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = -s.v "
        "WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v)"
    )
    spark.sql(merge)
    rows = {row["v"]: row for row in DeltaTable(path).to_pyarrow_table().to_pylist()}
    assert set(rows) == {0, 1, -2, 4, 5, 6, 7}
    for old, new in ((0, 0), (1, 1), (2, -2)):
        assert rows[new] == {**before[old], "v": new}
    farthest = max(row["i"] for row in before.values())
    inserted = [rows[v] for v in (4, 5, 6, 7)]
    assert len({row["i"] for row in rows.values()}) == len(rows)
    assert all(
        row["i"] % 10 == 0 and row["i"] > farthest and row["twice"] == 2 * row["i"] for row in inserted
    )
    # Values that were assigned to `d` do not change its high water mark.
    assert sorted({row["d"] for row in inserted} & {row["d"] for row in before.values()}) == []
    assert all(1 <= row["d"] < 1000 for row in inserted)
    # The high water marks are now the values of the inserted rows, so later values are new.
    marks = {
        field["name"]: field["metadata"].get("delta.identity.highWaterMark")
        for field in json.loads(DeltaTable(path).schema().to_json())["fields"]
    }
    assert (marks["i"], marks["d"]) == (max(row["i"] for row in inserted), max(row["d"] for row in inserted))
    spark.sql(f"INSERT INTO {table} (v) VALUES (8)")
    found = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert len({row["i"] for row in found}) == len(found) == 8
    if feed == "true":
        changes = pa.table(DeltaTable(path).load_cdf(2, 2)).to_pylist()
        added = [row for row in changes if row["_change_type"] == "insert"]
        assert sorted((row["v"], row["i"], row["d"]) for row in added) == sorted(
            (row["v"], row["i"], row["d"]) for row in inserted
        )


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_identity_columns_keep_their_values(spark: SparkSession, path: str, kind: str) -> None:
    """Identity columns keep their values when other columns of a row are changed. (PROTOCOL.md, "Identity Columns".)"""
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in KINDS[kind][0].items()) or "'a' = 'b'"
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (i LONG GENERATED ALWAYS AS IDENTITY, d LONG GENERATED BY DEFAULT AS IDENTITY, v INT) "
        f"USING deltalog TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO {table} (v) VALUES (10), (20)")
    before = DeltaTable(path).to_pyarrow_table().to_pylist()
    spark.sql(f"UPDATE {table} SET v = v + 1 WHERE v = 10")
    source = "(SELECT 20 AS v)"
    spark.sql(f"MERGE INTO {table} t USING {source} s ON t.v = s.v WHEN MATCHED THEN UPDATE SET v = 21")
    found = DeltaTable(path).to_pyarrow_table().to_pylist()
    expected = [{**row, "v": row["v"] + 1} for row in before]
    assert sorted(found, key=str) == sorted(expected, key=str)
    version = DeltaTable(path).version()
    for statement, words in (
        (f"UPDATE {table} SET i = 7", "'i' cannot be changed"),
        (f"UPDATE {table} SET d = 7", "'d' cannot be changed"),
        (
            f"MERGE INTO {table} t USING {source} s ON t.v = s.v WHEN MATCHED THEN UPDATE SET d = 7",
            "'d' cannot be changed",
        ),
        (
            f"MERGE INTO {table} t USING {source} s ON t.v = s.v WHEN NOT MATCHED THEN INSERT (i) VALUES (1)",
            "always generated",
        ),
        (
            (
                f"MERGE INTO {table} t USING {source} s ON t.v = s.v WHEN NOT MATCHED AND s.v = 1 "
                "THEN INSERT (v) VALUES (1) WHEN NOT MATCHED THEN INSERT (d, v) VALUES (1, 1)"
            ),
            "leave out different identity columns",
        ),
    ):
        with pytest.raises(Exception, match=words):
            spark.sql(statement)
    assert DeltaTable(path).version() == version
