"""MERGE WITH SCHEMA EVOLUTION commits rows and new columns together, by the rules of the JVM connector.

The expected results come from the JVM connector 4.4.0.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltalog.tables
from deltalog import DeltaTable, SchemaMismatchError

SparkTable = deltalog.tables.DeltaTable

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
VECTORS = {"delta.enableDeletionVectors": "true"}
WIDENING = {"delta.enableTypeWidening": "true"}
NESTED = "id LONG, st STRUCT<a: INT, b: INT>"
NESTED_ROWS = "(1, struct(1, 2)), (2, NULL), (3, struct(3, 3))"
NESTED_SOURCE = (
    "(SELECT * FROM VALUES (1L, named_struct('a', 10, 'c', 'c1')), (2L, named_struct('a', 20, 'c', 'c2')), (3L, NULL), "
    "(4L, named_struct('a', 40, 'c', 'c4')), (5L, NULL) AS s(id, st))"
)
FLAT = "id LONG, s STRING"
FLAT_ROWS = "(5, 'x'), (6, 'y')"
FLAT_SOURCE = "(SELECT * FROM VALUES (5L, 'a', 1), (9L, 'n', 2) AS s(id, s, extra))"
ARRAYS_SOURCE = (
    "(SELECT * FROM VALUES (1L, array(named_struct('a', 10, 'c', 'x'), NULL), "
    "map('k', named_struct('a', 2, 'z', 3), 'n', NULL)), (2L, NULL, NULL) AS s(id, l, m))"
)
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def created(spark: SparkSession, path: str, columns: str, rows: str, **properties: str) -> str:
    table = f"deltalog.`{path}`"
    given = ", ".join(f"'{name}' = '{value}'" for name, value in (properties or {"a": "b"}).items())
    spark.sql(f"CREATE TABLE {table} ({columns}) USING deltalog TBLPROPERTIES ({given})")
    if rows:
        spark.sql(f"INSERT INTO {table} VALUES {rows}")
    return table


def merge(spark: SparkSession, table: str, source: str, clauses: str) -> Any:
    return spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING {source} s ON t.id = s.id {clauses}"
    ).collect()[0]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def content(spark: SparkSession, path: str) -> tuple[str, list[Any]]:
    """Checks that the Rust core reads the same rows as Spark, and returns them."""
    found = spark.read.format("deltalog").load(path)
    rows = sorted((plain(tuple(row)) for row in found.collect()), key=str)
    table = DeltaTable(path).to_pyarrow_table()
    assert table.column_names == found.columns
    assert table.num_rows == len(rows)
    columns = ", ".join(
        f"{field.name}: {field.dataType.simpleString()}".replace("bigint", "long") for field in found.schema
    )
    return columns, rows


CASES: dict[str, tuple[str, str, str, str, str, list[Any]]] = {
    "stars": (
        "id LONG, s STRING, only INT",
        "(5, 'x', 1), (6, 'y', 2)",
        FLAT_SOURCE,
        UPSERT,
        "id: long, s: string, only: int, extra: int",
        [(5, "a", 1, 1), (6, "y", 2, None), (9, "n", None, 2)],
    ),
    "an assignment": (
        FLAT,
        FLAT_ROWS,
        FLAT_SOURCE,
        "WHEN MATCHED THEN UPDATE SET extra = s.extra + 1",
        "id: long, s: string, extra: int",
        [(5, "x", 2), (6, "y", None)],
    ),
    "names that only the source has": (
        FLAT,
        FLAT_ROWS,
        FLAT_SOURCE,
        "WHEN MATCHED THEN UPDATE SET extra = extra WHEN NOT MATCHED THEN INSERT (id, extra) VALUES (s.id, extra)",
        "id: long, s: string, extra: int",
        [(5, "x", 1), (6, "y", None), (9, None, 2)],
    ),
    "names in another case": (
        "id LONG, Sx STRING",
        FLAT_ROWS,
        "(SELECT * FROM VALUES (5L, 'a', 1), (9L, 'n', 2) AS s(ID, sX, Extra))",
        UPSERT,
        "id: long, Sx: string, Extra: int",
        [(5, "a", 1), (6, "y", None), (9, "n", 2)],
    ),
    "only deletes": (
        FLAT,
        FLAT_ROWS,
        FLAT_SOURCE,
        "WHEN MATCHED THEN DELETE",
        "id: long, s: string",
        [(6, "y")],
    ),
    "no row changes": (
        FLAT,
        "(50, 'x')",
        FLAT_SOURCE,
        "WHEN MATCHED THEN UPDATE SET *",
        "id: long, s: string, extra: int",
        [(50, "x", None)],
    ),
    "an empty table": (
        FLAT,
        "",
        FLAT_SOURCE,
        UPSERT,
        "id: long, s: string, extra: int",
        [(5, "a", 1), (9, "n", 2)],
    ),
    "rows without a match": (
        FLAT,
        FLAT_ROWS,
        FLAT_SOURCE,
        f"{UPSERT} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'alone'",
        "id: long, s: string, extra: int",
        [(5, "a", 1), (6, "alone", None), (9, "n", 2)],
    ),
    # UPDATE SET * keeps the fields of a struct that the source lacks.
    "fields": (
        NESTED,
        NESTED_ROWS,
        NESTED_SOURCE,
        UPSERT,
        "id: long, st: struct<a:int,b:int,c:string>",
        [
            (1, (10, 2, "c1")),
            (2, (20, None, "c2")),
            (3, (None, 3, None)),
            (4, (40, None, "c4")),
            (5, None),
        ],
    ),
    "a struct": (
        NESTED,
        NESTED_ROWS,
        NESTED_SOURCE,
        "WHEN MATCHED THEN UPDATE SET st = s.st WHEN NOT MATCHED THEN INSERT (id, st) VALUES (s.id, s.st)",
        "id: long, st: struct<a:int,b:int,c:string>",
        [(1, (10, None, "c1")), (2, (20, None, "c2")), (3, None), (4, (40, None, "c4")), (5, None)],
    ),
    "a field": (
        NESTED,
        NESTED_ROWS,
        NESTED_SOURCE,
        "WHEN MATCHED THEN UPDATE SET st.c = s.st.c",
        "id: long, st: struct<a:int,b:int,c:string>",
        [(1, (1, 2, "c1")), (2, (None, None, "c2")), (3, (3, 3, None))],
    ),
    "a struct with fewer fields": (
        NESTED,
        NESTED_ROWS,
        "(SELECT 1L AS id, 2 AS x)",
        "WHEN MATCHED THEN UPDATE SET st = named_struct('a', 1)",
        "id: long, st: struct<a:int,b:int>",
        [(1, (1, None)), (2, None), (3, (3, 3))],
    ),
    "arrays and maps": (
        "id LONG, l ARRAY<STRUCT<a: INT, b: INT>>, m MAP<STRING, STRUCT<a: INT>>",
        "(1, array(named_struct('a', 1, 'b', 2)), map('k', named_struct('a', 1))), (3, NULL, NULL)",
        ARRAYS_SOURCE,
        UPSERT,
        "id: long, l: array<struct<a:int,b:int,c:string>>, m: map<string,struct<a:int,z:int>>",
        [
            (1, [(10, None, "x"), None], {"k": (2, 3), "n": None}),
            (2, None, None),
            (3, None, None),
        ],
    ),
}


@pytest.mark.parametrize(
    ("name", "properties"),
    [(name, VECTORS) for name in CASES] + [(name, {}) for name in ("stars", "fields", "only deletes")],
)
def test_columns_are_added(spark: SparkSession, path: str, name: str, properties: dict[str, str]) -> None:
    columns, rows, source, clauses, expected_columns, expected = CASES[name]
    table = created(spark, path, columns, rows, **properties)
    version = DeltaTable(path).version()
    merge(spark, table, source, clauses)
    assert content(spark, path) == (expected_columns, expected)
    assert DeltaTable(path).version() == version + 1, "columns and rows are one commit"


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ("WHEN MATCHED THEN UPDATE SET nowhere = 1", "nowhere"),
        ("WHEN MATCHED THEN UPDATE SET t.extra = 1", "extra"),
        ("WHEN MATCHED AND t.extra IS NULL THEN UPDATE SET *", "extra"),
        (f"{UPSERT} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET extra = 3", "extra"),
        ("WHEN MATCHED THEN UPDATE SET s = t.extra", "extra"),
    ],
)
def test_only_columns_of_the_source_are_added_and_the_statement_does_not_see_them(
    spark: SparkSession, path: str, clauses: str, words: str
) -> None:
    table = created(spark, path, FLAT, FLAT_ROWS)
    with pytest.raises(Exception, match=words):
        merge(spark, table, FLAT_SOURCE, clauses)
    assert content(spark, path) == ("id: long, s: string", [(5, "x"), (6, "y")])


def test_a_value_with_an_unknown_field_is_refused(spark: SparkSession, path: str) -> None:
    table = created(spark, path, NESTED, NESTED_ROWS)
    with pytest.raises(SchemaMismatchError, match="the field zz"):
        merge(
            spark,
            table,
            NESTED_SOURCE,
            "WHEN MATCHED THEN UPDATE SET st = named_struct('a', 1, 'zz', 3)",
        )
    assert DeltaTable(path).version() == 1


@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewriting"])
def test_types_become_wider_where_the_table_allows_it(
    spark: SparkSession, path: str, properties: dict[str, str]
) -> None:
    """Types become wider if the table allows it, including the types of keys. Values are computed with the table's
    earlier types. (PROTOCOL.md, "Type Widening".)
    """
    rows = "(5, 1, struct(1)), (6, 2, struct(2))"
    table = created(spark, path, "id INT, v INT, st STRUCT<f: SMALLINT>", rows, **WIDENING, **properties)
    source = "(SELECT 5L AS id, 5000000000L AS v, named_struct('f', 70000) AS st)"
    merge(spark, table, source, "WHEN MATCHED THEN UPDATE SET *")
    assert content(spark, path) == (
        "id: long, v: long, st: struct<f:int>",
        [(5, 5_000_000_000, (70_000,)), (6, 2, (2,))],
    )
    other = created(spark, f"{path} 2", "id INT, v INT", "(5, 1), (6, 2)", **WIDENING)
    with pytest.raises(Exception, match="overflow"):
        merge(
            spark,
            other,
            "(SELECT 5 AS id, 5L AS v)",
            "WHEN MATCHED THEN UPDATE SET v = t.v + 2147483647",
        )
    fixed = created(spark, f"{path} 3", "id INT, v INT", "(5, 1), (6, 2)")
    merge(spark, fixed, "(SELECT 5L AS id, 5000L AS v)", "WHEN MATCHED THEN UPDATE SET *")
    assert content(spark, f"{path} 3") == ("id: int, v: int", [(5, 5000), (6, 2)])


@pytest.mark.parametrize(
    "properties",
    [
        {**VECTORS, "delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"},
        {"delta.columnMapping.mode": "id"},
        {"delta.enableRowTracking": "true"},
    ],
    ids=["mapped, tracked, vectors", "mapped", "tracked"],
)
@pytest.mark.newest
def test_columns_of_partitioned_tables_are_added(
    spark: SparkSession, path: str, properties: dict[str, str]
) -> None:
    """Columns are added to a partitioned table. Copied rows have NULL in the new columns, and keep their row ids."""
    table = f"deltalog.`{path}`"
    writer = spark.range(20).selectExpr("id", "id % 3 AS p", "named_struct('a', id) AS st").write
    writer.format("deltalog").options(**properties).partitionBy("p").save(path)
    ids = "SELECT id, _metadata.row_id FROM {}" if "delta.enableRowTracking" in properties else None
    before = {tuple(row) for row in spark.sql(ids.format(table)).collect()} if ids else set()
    merge(
        spark,
        table,
        "(SELECT id, 1L AS p, named_struct('b', id, 'a', -id) AS st, id AS n FROM range(18, 22))",
        UPSERT,
    )
    expected: list[tuple[Any, ...]] = [(i, i % 3, (i, None), None) for i in range(18)]
    expected += [(i, 1, (-i, i), i) for i in range(18, 22)]
    assert content(spark, path) == (
        "id: long, p: long, st: struct<a:long,b:long>, n: long",
        sorted(expected, key=str),
    )
    if ids:
        after = {tuple(row) for row in spark.sql(ids.format(table)).collect()}
        assert before <= after


def test_verbs_add_columns(spark: SparkSession, path: str) -> None:
    created(spark, path, FLAT, FLAT_ROWS, **VECTORS)
    source = spark.sql(f"SELECT * FROM {FLAT_SOURCE}")
    verb = SparkTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    verb.whenMatchedUpdate(set={"extra": "s.extra"}).whenNotMatchedInsertAll().withSchemaEvolution().execute()
    assert content(spark, path) == (
        "id: long, s: string, extra: int",
        [(5, "x", 1), (6, "y", None), (9, "n", 2)],
    )


@pytest.fixture
def auto_merge(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(AUTO_MERGE, "true")
    yield
    spark.conf.unset(AUTO_MERGE)


@pytest.mark.usefixtures("auto_merge")
def test_the_setting_of_the_session_adds_columns(spark: SparkSession, path: str) -> None:
    table = created(spark, path, FLAT, FLAT_ROWS, **VECTORS)
    spark.sql(f"MERGE INTO {table} t USING {FLAT_SOURCE} s ON t.id = s.id {UPSERT}")
    assert content(spark, path) == (
        "id: long, s: string, extra: int",
        [(5, "a", 1), (6, "y", None), (9, "n", 2)],
    )


def test_without_evolution_columns_of_the_source_are_left_out(spark: SparkSession, path: str) -> None:
    table = created(spark, path, FLAT, FLAT_ROWS, **VECTORS)
    spark.sql(f"MERGE INTO {table} t USING {FLAT_SOURCE} s ON t.id = s.id {UPSERT}")
    assert content(spark, path) == ("id: long, s: string", [(5, "a"), (6, "y"), (9, "n")])


def test_explain_adds_nothing(spark: SparkSession, path: str) -> None:
    table = created(spark, path, FLAT, FLAT_ROWS)
    explained = spark.sql(
        f"EXPLAIN MERGE WITH SCHEMA EVOLUTION INTO {table} t USING {FLAT_SOURCE} s ON t.id = s.id {UPSERT}"
    ).collect()[0][0]
    assert "MergeIntoTable" in explained
    assert DeltaTable(path).version() == 1


def test_the_source_may_be_the_table_itself(spark: SparkSession, path: str) -> None:
    table = created(spark, path, FLAT, FLAT_ROWS, **VECTORS)
    merge(spark, table, f"(SELECT id + 1 AS id, s, id AS extra FROM {table})", UPSERT)
    assert content(spark, path) == (
        "id: long, s: string, extra: long",
        [(5, "x", None), (6, "x", 5), (7, "y", 6)],
    )


def test_fields_are_added_to_a_struct_with_a_field_that_is_not_null(spark: SparkSession, path: str) -> None:
    table = created(
        spark,
        path,
        "id LONG, st STRUCT<a: INT NOT NULL, b: INT>",
        "(1, struct(1, 2)), (2, NULL), (3, struct(3, 3))",
    )
    source = "(SELECT 1L AS id, named_struct('a', 10, 'b', 20, 'c', 'x') AS st UNION ALL SELECT 4L, NULL)"
    merge(spark, table, source, UPSERT)
    rows = {row.id: row.st and tuple(row.st) for row in spark.table(table).collect()}
    assert rows == {1: (10, 20, "x"), 2: None, 3: (3, 3, None), 4: None}


def test_columns_may_have_the_names_of_hidden_ones(spark: SparkSession, path: str) -> None:
    hidden = "__deltalog_evolved s"
    mapped = {"delta.columnMapping.mode": "name", **WIDENING}
    table = created(spark, path, f"id LONG, s SHORT, `{hidden}` INT", "(1, 1, 5)", **mapped)
    source = f"(SELECT 1L AS id, 100000 AS s, 6 AS `{hidden}`)"
    clause = f"WHEN MATCHED AND t.`{hidden}` = 5 THEN UPDATE SET *"
    merge(spark, table, source, clause)
    assert [tuple(row) for row in spark.table(table).collect()] == [(1, 100000, 6)]
