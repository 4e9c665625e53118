"""Statements of a `DeltaTable` may use columns of DataFrames that it has returned. Columns may have the names of
internal marker columns.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import deltalog
from deltalog.errors import InvalidArgumentError
from deltalog.tables import DeltaTable

NAMES = [
    "__deltalog_source",
    "__deltalog_operation",
    "__deltalog_file",
    "__deltalog_row",
    "__deltalog_clause",
    "__deltalog_is_changed",
]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTable:
    path = str(tmp_path / "table")
    spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, v)").write.format("deltalog").save(
        path
    )
    return DeltaTable.forPath(spark, path)


def rows(table: DeltaTable) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in table.toDF().collect())


def source(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (2, 'x'), (9, 'y') AS v(id, v)")


def test_statements_take_columns_of_the_tables_own_frames(spark: SparkSession, table: DeltaTable) -> None:
    frame, given = table.toDF(), source(spark)
    table.update(frame.id == 1, {"v": sf.concat(frame.v, frame.v)})
    # The DataFrame stays on its version, but in a statement its columns refer to the newest version of the table.
    merge = table.merge(given, frame.id == given.id)
    merge = merge.whenMatchedUpdate(condition=frame.v == "b", set={"v": sf.concat(frame.v, given.v)})
    merge.whenNotMatchedInsertAll().whenNotMatchedBySourceDelete(condition=frame.v == "c").execute()
    assert rows(table) == [(1, "aa"), (2, "bx"), (9, "y")]
    table.delete(frame.id == 9)
    assert rows(table) == [(1, "aa"), (2, "bx")]


def test_frames_of_a_table_and_of_its_aliases_are_its_own(spark: SparkSession, table: DeltaTable) -> None:
    first, second = table.toDF(), table.alias("t").toDF()
    given = source(spark)
    table.alias("x").merge(given, (second.id == given.id) & (first.v == "b")).whenMatchedDelete().execute()
    assert rows(table) == [(1, "a"), (3, "c")]


def test_a_column_that_the_source_has_too_is_not_guessed(spark: SparkSession, table: DeltaTable) -> None:
    frame = table.toDF()
    given = frame.where("id = 2")
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        table.merge(given, frame.id == given.id).whenMatchedDelete().execute()
    named = table.alias("t")
    named.merge(given.alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    assert rows(table) == [(1, "a"), (3, "c")]


def test_frames_of_other_tables_are_not_a_tables_own(spark: SparkSession, table: DeltaTable) -> None:
    other = DeltaTable.forPath(spark, table.detail().collect()[0].location).toDF()
    with pytest.raises(AnalysisException, match="MISSING_ATTRIBUTES"):
        table.delete(other.id == 1)


def test_columns_may_have_the_names_of_markers(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    columns = ", ".join(f"{number} AS `{name}`" for number, name in enumerate(NAMES))
    spark.sql(f"SELECT 1 AS id, {columns} UNION ALL SELECT 2, {', '.join('0' * len(NAMES))}").write.format(
        "deltalog"
    ).save(path)
    target = f"deltalog.`{path}`"
    deltalog.DeltaTable(path).alter.add_constraint({"c": f"`{NAMES[1]}` < 100"})
    spark.sql(f"UPDATE {target} SET `{NAMES[0]}` = 7 WHERE `{NAMES[5]}` = 5")
    spark.sql(f"DELETE FROM {target} WHERE `{NAMES[2]}` + 0 = 1000")
    condition = f"t.id = s.id AND t.`{NAMES[0]}` < 100 AND s.`{NAMES[3]}` = 3"
    spark.sql(
        f"MERGE INTO {target} t USING (SELECT 1 AS id, {columns} UNION ALL SELECT 3 AS id, {columns}) s ON {condition} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    numbers = tuple(range(len(NAMES)))
    found = rows(DeltaTable.forPath(spark, path))
    assert found == [(1, *numbers), (2, *[0] * len(NAMES)), (3, *numbers)]
    with pytest.raises(InvalidArgumentError, match="refuses a row"):
        spark.sql(f"UPDATE {target} SET `{NAMES[1]}` = 100")


@pytest.mark.parametrize("kind", ["matched", "not_matched", "by_source"])
def test_no_clause_follows_one_without_a_condition(spark: SparkSession, table: DeltaTable, kind: str) -> None:
    merge = table.alias("t").merge(source(spark).alias("s"), "t.id = s.id")
    add: Callable[[], object] = {
        "matched": merge.whenMatchedDelete,
        "not_matched": merge.whenNotMatchedInsertAll,
        "by_source": merge.whenNotMatchedBySourceDelete,
    }[kind]
    add()
    with pytest.raises(InvalidArgumentError, match="no condition"):
        add()


def test_arguments_of_verbs_are_checked_at_the_call(spark: SparkSession, table: DeltaTable) -> None:
    merge = table.alias("t").merge(source(spark).alias("s"), "t.id = s.id")
    wrong: list[Callable[[], object]] = [
        lambda: table.update(set={"v": 5}),  # type: ignore[dict-item]
        lambda: table.update(set={5: "5"}),  # type: ignore[dict-item]
        lambda: merge.whenMatchedUpdate(set={"v": 5}),  # type: ignore[dict-item]
        lambda: merge.whenMatchedUpdate(set="v"),  # type: ignore[arg-type]
        lambda: merge.whenMatchedUpdate(set=None),
        lambda: merge.whenNotMatchedInsert(values={3: "5"}),  # type: ignore[dict-item]
        lambda: merge.whenNotMatchedInsert(values=7),  # type: ignore[arg-type]
        lambda: merge.whenNotMatchedBySourceUpdate(set={"v": None}),  # type: ignore[dict-item]
    ]
    for call in wrong:
        with pytest.raises(ValueError, match="cannot be") as caught:
            call()
        assert isinstance(caught.value, InvalidArgumentError)


def test_the_history_shows_predicates_of_a_merge_with_qualifiers(
    spark: SparkSession, table: DeltaTable
) -> None:
    merge = table.alias("t").merge(source(spark).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate("t.v <> s.v", {"v": "s.v"}).whenNotMatchedInsertAll("s.id > 4").execute()
    parameters = table.history(1).collect()[0].operationParameters
    assert parameters["predicate"] == '["(t.id = s.id)"]'
    assert '"(NOT (t.v = s.v))"' in parameters["matchedPredicates"]
    assert '"(s.id > 4)"' in parameters["notMatchedPredicates"]
