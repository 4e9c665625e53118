"""Spark's plans of MERGE: a small source is broadcast, and the target is not shuffled, whatever the clauses are."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from deltalog.spark.dml import merge
from deltalog.spark.dml.target import Target
from deltalog.spark.jvm import Jvm

CLAUSES = [
    "WHEN MATCHED AND s.id % 2 = 0 THEN UPDATE SET v = 'u' WHEN MATCHED THEN DELETE",
    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'i')",
    "WHEN NOT MATCHED BY SOURCE AND t.id < 10 THEN UPDATE SET v = 'alone'",
]
COMBINATIONS = [
    " ".join(clauses) for count in (1, 2, 3) for clauses in itertools.combinations(CLAUSES, count)
]


def plans(spark: SparkSession) -> dict[int, str]:
    """Returns the physical plans of the session's last queries, by execution number."""
    session: Any = spark._jsparkSession
    session.sparkContext().listenerBus().waitUntilEmpty()
    jvm: Any = spark.sparkContext._jvm
    executions = jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        session.sharedState().statusStore().executionsList()
    )
    return {execution.executionId(): execution.physicalPlanDescription() for execution in executions}


@pytest.mark.parametrize("limit", ["small", "large"])
def test_the_target_is_not_shuffled_for_a_small_source(spark: SparkSession, path: str, limit: str) -> None:
    """The target is shuffled only if the source is large. The result is the same in both cases."""
    options = {"delta.enableDeletionVectors": "true"}
    for number, clauses in enumerate(COMBINATIONS):
        made = f"{path} {number}"
        table = f"deltalog.`{made}`"
        spark.range(100).selectExpr("id", "'old' AS v").write.format("deltalog").options(**options).save(made)
        # Spark keeps only a limited number of executions, and drops the oldest ones.
        last = max(plans(spark))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merge, "_BROADCAST", merge._BROADCAST if limit == "small" else -1)
            if limit == "large":
                spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
            try:
                spark.sql(
                    f"MERGE INTO {table} t USING (SELECT * FROM range(50, 150)) s ON t.id = s.id {clauses}"
                )
            finally:
                spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        joins = [plan for number, plan in plans(spark).items() if number > last and "Join" in plan]
        assert joins, clauses
        for plan in joins:
            is_shuffled = "Exchange hashpartitioning" in plan or "SortMergeJoin" in plan
            assert is_shuffled == (limit == "large"), plan
            assert ("BroadcastHashJoin" in plan) == (limit == "small"), plan
        rows = DeltaTable(made).to_pyarrow_table().to_pylist()
        expected = dict.fromkeys(range(100), "old")
        if "WHEN MATCHED AND" in clauses:
            expected = {i: "u" if i >= 50 else v for i, v in expected.items() if i < 50 or i % 2 == 0}
        if "INSERT" in clauses:
            expected |= dict.fromkeys(range(100, 150), "i")
        if "BY SOURCE" in clauses:
            expected |= dict.fromkeys(range(10), "alone")
        assert {row["id"]: row["v"] for row in rows} == expected, clauses


def test_spark_derives_no_constraints_from_pairs_of_the_sources_columns(spark: SparkSession) -> None:
    """Spark derives no constraints from pairs of the source's columns. Otherwise planning time would grow with the
    third power of the number of columns.
    """
    width = 60
    rows = spark.range(3).selectExpr("id", *(f"id * 2 + 1 AS c{number}" for number in range(width)))
    kept = Jvm.of(spark).new("KeptRows", rows._jdf)
    kept.evaluate()
    try:
        assert kept.plan().constraints().size() == 0
        assert rows._jdf.queryExecution().analyzed().constraints().size() > width + 2
    finally:
        kept.release()


@pytest.fixture(scope="module")
def wide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Creates a table of 40 columns, and the view `wide` with the same columns, which are computed from one
    expression.
    """
    path = str(tmp_path_factory.mktemp("wide") / "table")
    rows = spark.range(3).selectExpr("id", *(f"id * 2 + 1 AS c{number}" for number in range(39)))
    rows.write.format("deltalog").save(path)
    rows.createOrReplaceTempView("wide")
    return path


def test_the_columns_of_clauses_are_found_before_spark_looks_for_each(spark: SparkSession, wide: str) -> None:
    """deltalog resolves the columns of clauses. Otherwise, Spark would make a list of all columns for each name, and
    planning time would grow with the square of the number of columns.
    """
    explicit = ", ".join(f"c{number} = s.c{number}" for number in range(39))
    names = ", ".join(f"c{number}" for number in range(39))
    values = ", ".join(f"s.c{number}" for number in range(39))
    for clauses in (
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        f"WHEN MATCHED THEN UPDATE SET {explicit} WHEN NOT MATCHED THEN INSERT (id, {names}) VALUES (s.id, {values})",
    ):
        text = f"MERGE INTO deltalog.`{wide}` t USING wide s ON t.id = s.id {clauses}"
        session: Any = spark._jsparkSession
        parsed = session.sessionState().sqlParser().parsePlan(text)
        jvm = Jvm.of(spark)
        hidden = jvm.new("EvolvingMerges", session).apply(parsed)
        assert hidden.nodeName() == "EvolvingMerge"
        analyzer = session.sessionState().analyzer()
        tables = [analyzer.execute(table) for table in jvm.sequence(hidden.children())]
        statement = jvm.new("MergeEvolution", session).apply(jvm.new("EvolvingMerge", *tables, parsed))
        update, insert = statement.matchedActions().head(), statement.notMatchedActions().head()
        assigned = [*jvm.sequence(update.assignments()), *jvm.sequence(insert.assignments())]
        assert len(assigned) >= 79
        assert all(assignment.key().resolved() for assignment in assigned)
        # Only the values of INSERT are checked. The values of UPDATE SET may use columns of both tables, which Spark
        # puts into a single list.
        assert all(assignment.value().resolved() for assignment in jvm.sequence(insert.assignments()))


def test_the_target_of_a_statement_has_no_constraint_for_each_of_its_columns(
    spark: SparkSession, wide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of the target has no constraints for its single columns. Otherwise, Spark would compare each of these
    constraints with all others.
    """
    jvm, session = Jvm.of(spark), spark._jsparkSession
    delete = f"DELETE FROM deltalog.`{wide}` WHERE id = 1 AND c1 = 5"
    parsed = session.sessionState().sqlParser().parsePlan(delete)
    mode = jvm.java("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
    command = session.sessionState().executePlan(parsed, mode).analyzed()
    target = jvm.static("StatementTarget", "of", command.statement())
    constraints: list[int] = []
    scan = Target.scan

    @contextmanager
    def watched(self: Target, plan: Any) -> Iterator[str]:
        with scan(self, plan) as relation:
            rows = jvm.new("StatementScan", session, relation, target).plan()
            assert rows.output().size() == 42
            constraints.append(rows.constraints().size())
            yield relation

    monkeypatch.setattr(Target, "scan", watched)
    assert spark.sql(delete).collect()[0][0] == 0
    assert constraints
    assert max(constraints) <= 2
