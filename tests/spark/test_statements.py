"""DELETE, UPDATE and MERGE change exactly the requested rows, with deletion vectors and by rewriting files."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import deltalog.spark
import deltalog.tables
from deltalog import DeltaTable
from tests.spark.statement_tables import (
    BASIC_KINDS,
    KINDS,
    OLD,
    VECTORS,
    Row,
    Rows,
    check,
    created,
    files,
    metrics,
    ordered,
)

SparkTable = deltalog.tables.DeltaTable


@pytest.fixture(
    params=[pytest.param(kind, marks=() if kind in BASIC_KINDS else pytest.mark.newest) for kind in KINDS]
)
def table(spark: SparkSession, path: str, request: pytest.FixtureRequest) -> str:
    """Creates a table with a few files, and returns its name. If the table allows deletion vectors, the first file has
    one.
    """
    return created(spark, path, request.param)


def test_delete_removes_the_rows_for_which_the_condition_is_true(
    spark: SparkSession, path: str, table: str
) -> None:
    """DELETE removes the rows for which the condition is true. Rows for which it is NULL are kept."""
    spark.sql(f"DELETE FROM {table} WHERE id % 10 = 3")
    expected = [row for row in OLD if row[0] is None or row[0] % 10 != 3]
    check(spark, path, expected)
    assert metrics(path)["numDeletedRows"] == str(len(OLD) - len(expected))
    # The condition selects rows in files from which other rows were deleted before.
    spark.sql(f"DELETE FROM {table} WHERE s > 's2' AND p = 1")
    expected = [row for row in expected if row[2] is None or row[2] <= "s2" or row[1] != 1]
    check(spark, path, expected)
    spark.sql(f"DELETE FROM {table} WHERE id IN (SELECT id + 1 FROM {table} WHERE id % 7 = 1)")
    gone = {row[0] + 1 for row in expected if row[0] is not None and row[0] % 7 == 1}
    expected = [row for row in expected if row[0] not in gone]
    check(spark, path, expected)
    spark.sql(f"DELETE FROM {table}")
    check(spark, path, [])


def test_update_changes_the_rows_for_which_the_condition_is_true(
    spark: SparkSession, path: str, table: str
) -> None:
    """UPDATE changes the rows for which the condition is true. Columns without a new value stay the same, and
    partition columns may change.
    """
    spark.sql(f"UPDATE {table} SET s = concat('new', id), p = p + 10 WHERE id < 100 AND s IS NOT NULL")
    expected = [
        (i, p + 10, f"new{i}") if i is not None and i < 100 and s is not None else (i, p, s)
        for i, p, s in OLD
    ]
    check(spark, path, expected)
    changed = sum(row[1] >= 10 for row in expected)
    assert metrics(path)["numUpdatedRows"] == str(changed)
    spark.sql(f"UPDATE {table} SET id = p")
    check(spark, path, [(p, p, s) for _, p, s in expected])


def merged(
    old: Rows,
    source: dict[int, str],
    matched: Callable[[Row, str], Row | None],
    inserted: Callable[[int, str], Row | None],
    by_source: Callable[[Row], Row | None],
) -> Rows:
    result: list[Row | None] = []
    for row in old:
        found = source.get(row[0]) if row[0] is not None else None
        result.append(by_source(row) if found is None else matched(row, found))
    keys = {row[0] for row in old}
    result += [inserted(key, value) for key, value in source.items() if key not in keys]
    return [row for row in result if row is not None]


def test_merge_with_all_clauses(spark: SparkSession, path: str, table: str) -> None:
    spark.range(200, 400, 5).selectExpr("id", "concat('m', id) AS s").createOrReplaceTempView("source")
    source = {i: f"m{i}" for i in range(200, 400, 5)}
    spark.sql(
        f"""MERGE INTO {table} t USING source s ON t.id = s.id
            WHEN MATCHED AND s.id % 3 = 0 THEN UPDATE SET s = s.s, p = t.p + 1
            WHEN MATCHED AND s.id % 3 = 1 THEN DELETE
            WHEN NOT MATCHED AND s.id % 2 = 0 THEN INSERT (id, p, s) VALUES (s.id, 7, s.s)
            WHEN NOT MATCHED AND s.id > 370 THEN INSERT (p, id) VALUES (8, s.id)
            WHEN NOT MATCHED BY SOURCE AND t.id < 20 THEN UPDATE SET s = 'alone'
            WHEN NOT MATCHED BY SOURCE AND t.s = 's100' THEN DELETE"""
    )

    def one(row: Row, s: str) -> Row | None:
        i, p, _ = row
        assert i is not None
        return (i, p + 1, s) if i % 3 == 0 else None if i % 3 == 1 else row

    def new(i: int, s: str) -> Row | None:
        return (i, 7, s) if i % 2 == 0 else (i, 8, None) if i > 370 else None

    def alone(row: Row) -> Row | None:
        i, p, s = row
        return (i, p, "alone") if i is not None and i < 20 else None if s == "s100" else row

    expected = merged(OLD, source, one, new, alone)
    check(spark, path, expected)
    found = metrics(path)
    assert found["numSourceRows"] == "40"
    assert found["numTargetRowsInserted"] == str(sum(row[1] in (7, 8) for row in expected))
    assert found["numTargetRowsDeleted"] == str(len(OLD) - sum(row[1] not in (7, 8) for row in expected))
    assert found["numTargetRowsNotMatchedBySourceUpdated"] == str(sum(row[2] == "alone" for row in expected))
    assert found["numTargetRowsNotMatchedBySourceDeleted"] == "1"


def test_merge_with_some_clauses(spark: SparkSession, path: str, table: str) -> None:
    spark.createDataFrame(
        [(5, "m5"), (1000, "m1000"), (None, "null")], "id long, s string"
    ).createOrReplaceTempView("source")
    merge = f"MERGE INTO {table} t USING source s ON t.id = s.id"
    spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (s.id, 9, s.s)")
    expected: Rows = [*OLD, (1000, 9, "m1000"), (None, 9, "null")]
    check(spark, path, expected)
    spark.sql(f"{merge} WHEN MATCHED THEN DELETE")
    expected = [row for row in expected if row[0] not in (5, 1000)]
    check(spark, path, expected)
    spark.sql(f"{merge} WHEN MATCHED THEN UPDATE SET s = 'never'")
    check(spark, path, expected)
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM source WHERE false) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    check(spark, path, expected)
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id, p, s FROM {table} WHERE id < 3) s ON t.id = s.id + 1 "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    by_id = {i: (i, p, s) for i, p, s in expected if i is not None and i < 3}
    expected = [by_id.get(row[0] - 1, row) if row[0] is not None else row for row in expected]
    check(spark, path, expected)


@pytest.mark.parametrize("broadcast", ["10m", "-1"])
@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_several_matches_of_a_row_are_an_error(
    spark: SparkSession, path: str, kind: str, broadcast: str
) -> None:
    table = created(spark, path, kind)
    spark.sql("SELECT * FROM VALUES (5L, 'a'), (5L, 'b'), (6L, 'c') AS s(id, s)").repartition(
        3
    ).createOrReplaceTempView("source")
    before = files(path)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
    try:
        with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
            spark.sql(
                f"MERGE INTO {table} t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s"
            )
        assert DeltaTable(path).version() == 0
        check(spark, path, OLD)
        # It is not an error if two clauses delete the same row.
        spark.sql(f"MERGE INTO {table} t USING source s ON t.id = s.id WHEN MATCHED THEN DELETE")
        check(spark, path, [row for row in OLD if row[0] not in (5, 6)])
        assert metrics(path)["numTargetRowsDeleted"] == "2"
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert [file for file in before if file.endswith(".parquet")]


def test_columns_of_the_type_char_are_compared_and_stored_padded(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE TABLE deltalog.`{path}` (id LONG, c CHAR(3)) USING deltalog")
    spark.sql(f"INSERT INTO deltalog.`{path}` VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    table = SparkTable.forPath(spark, path)
    assert table.update("c = 'b'", {"c": "'x'"}).collect()[0].num_affected_rows == 1
    assert table.delete("c = 'a'").collect()[0].num_affected_rows == 1
    spark.sql(f"UPDATE deltalog.`{path}` SET id = 30 WHERE c = 'c'")
    found = DeltaTable(path).to_pyarrow_table().to_pydict()
    assert sorted(zip(found["id"], found["c"], strict=True)) == [(2, "x  "), (30, "c  ")]


def test_verbs_do_what_statements_do(spark: SparkSession, path: str, table: str) -> None:
    verbs = SparkTable.forPath(spark, path)
    assert verbs.delete(sf.col("id") % 10 == 3).collect()[0].num_affected_rows == 30
    expected = [row for row in OLD if row[0] is None or row[0] % 10 != 3]
    updated = sum(row[0] is not None and row[0] < 20 for row in expected)
    assert verbs.update("id < 20", {"s": sf.lit("u"), "p": "p + 1"}).collect()[0].num_affected_rows == updated
    expected = [(i, p + 1, "u") if i is not None and i < 20 else (i, p, s) for i, p, s in expected]
    check(spark, path, expected)
    source = spark.range(0, 400, 10).selectExpr("id", "concat('m', id) AS s", "5 AS p")
    merge = verbs.alias("t").merge(source.alias("s"), "t.id = s.id")
    counts = (
        merge.whenMatchedDelete("s.id = 100")
        .whenMatchedUpdate(sf.col("s.id") < 50, {"s": "s.s"})
        .whenMatchedUpdateAll("s.id > 200")
        .whenNotMatchedInsert("s.id > 380", {"id": "s.id", "p": sf.lit(6)})
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate("t.id = 51", {"s": "'alone'"})
        .whenNotMatchedBySourceDelete("t.id = 52")
        .execute()
        .collect()[0]
    )

    def one(row: Row, s: str) -> Row | None:
        i, p, old = row
        assert i is not None
        return None if i == 100 else (i, p, s) if i < 50 else (i, 5, s) if i > 200 else (i, p, old)

    def alone(row: Row) -> Row | None:
        return None if row[0] == 52 else (51, row[1], "alone") if row[0] == 51 else row

    before = expected
    expected = merged(
        before,
        {i: f"m{i}" for i in range(0, 400, 10)},
        one,
        lambda i, s: (i, 6, None) if i > 380 else (i, 5, s),
        alone,
    )
    check(spark, path, expected)
    changed = sum(i is not None and i % 10 == 0 and (i < 50 or i > 200) for i, _, _ in before) + 1
    inserted = len(expected) - len(before) + 2
    assert tuple(counts) == (changed + 2 + inserted, changed, 2, inserted)


def test_fields_of_structs_are_stored_by_name(spark: SparkSession, path: str) -> None:
    """Fields of structs are matched by name, like columns of a table. A cast between structs would match them by
    position.
    """
    table = f"deltalog.`{path}`"
    spark.sql(f"CREATE TABLE {table} (id LONG, st STRUCT<a: INT, b: INT>) USING deltalog")
    spark.sql(f"INSERT INTO {table} VALUES (1, named_struct('a', 1, 'b', 2)), (2, NULL), (3, NULL)")
    spark.sql(f"UPDATE {table} SET st = named_struct('b', 20, 'a', 10) WHERE id = 1")
    spark.sql(f"UPDATE {table} SET st.b = 30 WHERE id = 1")
    SparkTable.forPath(spark, path).update("id = 2", {"st": "named_struct('b', 4, 'a', 3)"})
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id, named_struct('b', 6, 'a', 5) AS st FROM range(3, 5)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    found = DeltaTable(path).to_pyarrow_table().to_pydict()
    assert dict(zip(found["id"], found["st"], strict=True)) == {
        1: {"a": 10, "b": 30},
        2: {"a": 3, "b": 4},
        3: {"a": 5, "b": 6},
        4: {"a": 5, "b": 6},
    }


def test_a_cached_table_is_changed(spark: SparkSession, path: str) -> None:
    table = created(spark, path, "vectors")
    cached = spark.table(table).cache()
    try:
        cached.count()
        spark.sql(f"DELETE FROM {table} WHERE id < 5")
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT max(id) + 1 AS id FROM {table}) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 1)"
        )
        expected: Rows = [*(row for row in OLD if row[0] is None or row[0] >= 5), (300, 1, None)]
        check(spark, path, expected)
        # Reading the table by name returns the new rows, which are cached again.
        assert ordered(spark.table(table).select("id", "p", "s").collect()) == ordered(expected)
    finally:
        cached.unpersist()


def test_correlated_subqueries(spark: SparkSession, path: str) -> None:
    table = created(spark, path, "vectors")
    spark.createDataFrame([(3, "x"), (4, "y")], "k long, v string").createOrReplaceTempView("source")
    spark.sql(f"DELETE FROM {table} t WHERE EXISTS (SELECT 1 FROM source WHERE k = t.id AND v = 'x')")
    spark.sql(f"UPDATE {table} t SET s = (SELECT max(v) FROM source WHERE k = t.id) WHERE id BETWEEN 4 AND 5")
    values = {4: "y", 5: None}
    check(spark, path, [(i, p, values.get(i, s) if i in values else s) for i, p, s in OLD if i != 3])


def test_a_column_may_have_the_name_of_a_marker(spark: SparkSession, path: str) -> None:
    data = spark.range(10).selectExpr("id", "CAST(id AS INT) AS __deltalog_operation", "'s' AS s")
    data.write.format("deltalog").save(path)
    found = DeltaTable(path).to_pyarrow_table().to_pydict()
    assert sorted(found["__deltalog_operation"]) == list(range(10))


def test_a_statement_that_changes_nothing_commits_nothing(spark: SparkSession, path: str, table: str) -> None:
    before = files(path)
    spark.sql(f"DELETE FROM {table} WHERE id = -1")
    spark.sql(f"UPDATE {table} SET s = 'x' WHERE id = -1")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM range(-9, -1)) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert DeltaTable(path).version() == 0
    assert files(path) == before


def test_an_update_may_use_another_table(spark: SparkSession, path: str) -> None:
    """An UPDATE may use a subquery on another table. That table is read once, even if whole files are rewritten."""
    table = created(spark, path, "rewriting")
    asked = spark.range(300).where("id % 2 = 0")
    asked.createOrReplaceTempView("asked")
    try:
        spark.sql(f"UPDATE {table} SET s = 'x' WHERE id IN (SELECT id FROM asked)")
    finally:
        spark.catalog.dropTempView("asked")
    check(spark, path, [(i, p, "x" if i is not None and i % 2 == 0 else s) for i, p, s in OLD])


def test_a_user_function_is_not_mistaken_for_a_built_in_one(spark: SparkSession, path: str) -> None:
    """If a user-defined function has the name of one of Spark's functions, deltalog must not evaluate it as Spark's
    function.
    """
    table = created(spark, path, "vectors")
    session = spark.newSession()  # Before Spark 4.2, such a function cannot be dropped.
    deltalog.spark.enable(session)
    session.udf.register("lower", lambda text: "no" if text is None else "yes", "string")
    hides = session.sql("SELECT lower('A')").collect()[0][0] == "yes"
    session.sql(f"DELETE FROM {table} WHERE lower(s) = 'yes'")
    assert hides == (spark.version < "4.2")
    check(spark, path, [row for row in OLD if row[2] is None] if hides else OLD)


def test_a_condition_counts_by_the_rules_with_which_it_was_written(spark: SparkSession, path: str) -> None:
    """A condition is evaluated by the rules with which it was written. If a failed computation is NULL by these rules,
    as with `try_divide`, deltalog must not conclude that all rows of a file match. (SQL functions keep the settings
    with which they were created, but Spark does not allow them in these statements.)
    """
    spark.sql(
        f"CREATE TABLE t (id INT, s STRING, p INT) USING deltalog PARTITIONED BY (p) LOCATION '{path}' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        spark.sql("CREATE TEMPORARY FUNCTION lenient(x STRING) RETURNS INT RETURN CAST(x AS INT)")
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.sql("INSERT INTO t VALUES (1, 'x', 1), (2, '7', 1)")
        for statement in (
            "DELETE FROM t WHERE lenient(s) IS NULL",
            "UPDATE t SET id = 0 WHERE lenient(s) IS NULL",
            "MERGE INTO t USING (SELECT 1) ON lenient(s) IS NULL WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises(AnalysisException, match="UNSUPPORTED_SQL_UDF_USAGE"):
                spark.sql(statement)
        for value in (
            "try_add(id, 2147483647)",
            "try_add(p, 2147483647)",
            "try_divide(id, 0)",
            "try_element_at(array(id), 9)",
            "try_to_timestamp(s)",
        ):
            assert spark.sql(f"DELETE FROM t WHERE {value} IS NOT NULL").collect() == [(0,)], value
            assert spark.sql(f"DELETE FROM t WHERE {value} IS NULL").collect() == [(2,)], value
            spark.sql("INSERT INTO t VALUES (1, 'x', 1), (2, '7', 1)")
        assert spark.sql("DELETE FROM t WHERE try_cast(s AS INT) = 7").collect() == [(1,)]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.sql("DROP TEMPORARY FUNCTION IF EXISTS lenient")
        spark.sql("DROP TABLE t")


@pytest.mark.newest
@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewriting"])
def test_columns_with_the_names_of_our_markers_are_columns(
    spark: SparkSession, path: str, properties: dict[str, str]
) -> None:
    data = spark.range(0, 10, 1, 1).selectExpr(
        "id", "CAST(9 - id AS INT) AS __deltalog_file", "9 - id AS __deltalog_row"
    )
    data.write.format("deltalog").options(**properties).save(path)
    table = f"deltalog.`{path}`"
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"UPDATE {table} SET id = 12 WHERE id = 2")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 3L AS k UNION ALL SELECT 20L) s ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET id = 13 "
        "WHEN NOT MATCHED THEN INSERT (id, __deltalog_file, __deltalog_row) VALUES (s.k, 0, 0)"
    )
    expected = [(i, 9 - i, 9 - i) for i in (0, *range(4, 10))] + [(12, 7, 7), (13, 6, 6), (20, 0, 0)]
    assert ordered(map(tuple, spark.read.format("deltalog").load(path).collect())) == ordered(expected)


@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewriting"])
def test_a_column_may_be_named_metadata(spark: SparkSession, path: str, properties: dict[str, str]) -> None:
    data = spark.range(0, 5, 1, 1).selectExpr("id", "named_struct('row_index', id) AS _metadata")
    tracked = {**properties, "delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}
    data.write.format("deltalog").options(**tracked).save(path)
    table = f"deltalog.`{path}`"
    spark.sql(f"DELETE FROM {table} WHERE _metadata.row_index = 1")
    spark.sql(f"UPDATE {table} SET _metadata = named_struct('row_index', 20L) WHERE id = 2")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 3L AS k UNION ALL SELECT 20L) s ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET _metadata.row_index = 30 "
        "WHEN NOT MATCHED THEN INSERT (id, _metadata) VALUES (s.k, named_struct('row_index', 200L))"
    )
    found = spark.sql(f"SELECT id, _metadata.row_index FROM {table}").collect()
    assert sorted(map(tuple, found)) == [(0, 0), (2, 20), (3, 30), (4, 4), (20, 200)]


def test_a_statement_has_one_current_time(spark: SparkSession, path: str) -> None:
    """All jobs of a statement have the same current time. If Spark planned them separately, each job would have its
    own.
    """
    spark.range(4).selectExpr("id", "TIMESTAMP '2020-01-01' AS at").write.format("deltalog").save(path)
    spark.sql(
        f"MERGE INTO deltalog.`{path}` t USING (SELECT id FROM range(2, 6)) s "
        "ON t.id = s.id AND t.at < current_timestamp() WHEN MATCHED THEN UPDATE SET at = current_timestamp() "
        "WHEN NOT MATCHED THEN INSERT (id, at) VALUES (s.id, current_timestamp())"
    )
    written = spark.read.format("deltalog").load(path).where("id >= 2").groupBy("at").count().collect()
    assert [row["count"] for row in written] == [4]


@pytest.mark.parametrize("kind", ["tracked with vectors", "tracked"])
def test_statements_may_look_at_the_metadata_of_rows(spark: SparkSession, path: str, kind: str) -> None:
    """Like queries, statements may use the column `_metadata`. It describes the files as they were before the
    statement.
    """
    table = created(spark, path, kind)
    found = spark.sql(
        f"SELECT id, p, s, _metadata.file_name AS f, _metadata.row_id AS r FROM {table}"
    ).collect()
    file, row_id = found[0].f, found[-1].r
    spark.sql(
        f"UPDATE {table} SET s = concat(_metadata.row_id, s) WHERE _metadata.file_name = '{file}' AND id > 9"
    )
    seen = {row.r: row for row in found}
    expected = {
        r: (row.id, row.p, row.s and f"{r}{row.s}")
        if row.f == file and row.id is not None and row.id > 9
        else (row.id, row.p, row.s)
        for r, row in seen.items()
    }
    check(spark, path, list(expected.values()))
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT {row_id}L AS r) s ON t._metadata.row_id = s.r "
        "WHEN MATCHED THEN UPDATE SET s = t._metadata.file_path"
    )
    changed = (
        spark.read.format("deltalog").load(path).where("contains(s, '/part-')").select("id", "p").collect()
    )
    assert changed == [expected[row_id][:2]]
    del expected[row_id]
    spark.sql(f"DELETE FROM {table} WHERE _metadata.row_id IN ({row_id}, {found[0].r})")
    del expected[found[0].r]
    check(spark, path, list(expected.values()))


def test_a_merge_releases_its_source(spark: SparkSession, path: str) -> None:
    """A MERGE releases its cached source when the statement ends, even if it fails while the source is evaluated or
    later.
    """
    table = f"deltalog.`{path}`"
    spark.range(4).write.format("deltalog").save(path)
    spark.udf.register("failing", sf.udf(lambda value: 1 // (value - 1), "bigint"))
    merge = (
        "MERGE INTO {t} t USING ({s}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = {v} "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    kept = set(spark.sparkContext._jsc.getPersistentRDDs().keys())
    for source, value, fails in (
        ("SELECT id FROM range(0, 6, 1, 2)", "s.id + 10", False),
        ("SELECT failing(id) AS id FROM range(0, 6, 1, 2)", "s.id", True),
        ("SELECT id FROM range(0, 6, 1, 2)", "failing(s.id - 3)", True),
    ):
        with pytest.raises(Exception, match="ZeroDivisionError") if fails else nullcontext():
            spark.sql(merge.format(t=table, s=source, v=value))
        assert set(spark.sparkContext._jsc.getPersistentRDDs().keys()) == kept
