"""Void columns are NULL in all rows, and data files do not contain them. Spark 4.0 cannot read such columns by
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from deltalog import DeltaTable, convert_to_delta, write_deltalake
from deltalog.errors import InvalidArgumentError, SchemaMismatchError
from tests.crafted import CraftedTable, field, struct
from tests.python.place import data_files

PROPERTIES = {
    "plain": "'own' = 'x'",
    "mapped": "'delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true'",
    "by id": "'delta.columnMapping.mode' = 'id', 'delta.enableDeletionVectors' = 'true'",
    "tracked": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true', "
    "'delta.enableChangeDataFeed' = 'true'",
    "with partition columns": "'delta.feature.materializePartitionColumns' = 'supported'",
}
COLUMNS = "id INT, b VOID, s STRUCT<v: VOID, x: INT, r: STRUCT<y: INT, w: VOID>>, p STRING"
ROWS = """
    (1, NULL, named_struct('v', NULL, 'x', 5, 'r', named_struct('y', 6, 'w', NULL)), 'a'),
    (2, NULL, named_struct('v', NULL, 'x', NULL, 'r', NULL), 'a'),
    (3, NULL, NULL, 'b')
"""
FIRST = (1, None, (None, 5, (6, None)), "a")
SECOND = (2, None, (None, None, None), "a")
THIRD = (3, None, None, "b")


def values(frame: DataFrame) -> list[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    return sorted(plain(row) for row in frame.collect())


THOROUGH = {"mapped", "with partition columns"}


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.thorough] if name in THOROUGH else []) for name in PROPERTIES
    ]
)
def table(spark: SparkSession, path: str, request: pytest.FixtureRequest) -> str:
    name = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING deltalog PARTITIONED BY (p) TBLPROPERTIES "
        f"({PROPERTIES[request.param]})"
    )
    spark.sql(f"INSERT INTO {name} VALUES {ROWS}")
    return name


def check_files(path: str) -> None:
    for file in data_files(Path(path)):
        if file.endswith(".parquet"):
            leaves = {
                name for name in pq.ParquetFile(Path(path) / file).schema.names if not name.startswith("_")
            }
            assert not leaves & {"b", "v", "w"}


def test_a_void_column_is_null_in_every_row_and_in_no_file(
    spark: SparkSession, path: str, table: str
) -> None:
    check_files(path)
    found = spark.table(table)
    assert found.schema.simpleString() == (
        "struct<id:int,b:void,s:struct<v:void,x:int,r:struct<y:int,w:void>>,p:string>"
    )
    assert values(found) == [FIRST, SECOND, THIRD]
    assert values(spark.read.format("deltalog").load(path)) == [FIRST, SECOND, THIRD]
    with_rows = spark.read.format("deltalog").load(path)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        assert values(with_rows) == [FIRST, SECOND, THIRD]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert values(found.select("b")) == [(None,)] * 3
    assert values(found.select("s.v", "id").where("b IS NULL")) == [(None, 1), (None, 2), (None, 3)]
    assert found.where("b IS NOT NULL OR s.r.w IS NOT NULL").count() == 0
    assert found.where("s.v IS NULL AND s.x = 5").count() == 1
    assert values(found.selectExpr("count(b)", "count(*)", "min(b)")) == [(0, 3, None)]
    assert values(found.groupBy("b").count()) == [(None, 3)]
    assert found.cache().count() == 3
    assert values(found) == [FIRST, SECOND, THIRD]
    found.unpersist()
    rows = pa.table(DeltaTable(path).to_arrow()).to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 2, 3]
    assert {row["b"] for row in rows} == {None}


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_a_struct_is_not_null_because_only_its_void_fields_are_read(
    spark: SparkSession, path: str, table: str, vectorized: str
) -> None:
    found = spark.table(table)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        assert values(found.select("id", "s.v").where("s IS NOT NULL")) == [(1, None), (2, None)]
        assert values(found.selectExpr("id", "s.v", "s IS NULL")) == [
            (1, None, False),
            (2, None, False),
            (3, None, True),
        ]
        assert values(found.select("id", "s.r.w").where("s.r IS NOT NULL")) == [(1, None)]
        assert values(found.selectExpr("id", "s.v", "s.r.w", "s.r IS NULL").where("s IS NOT NULL")) == [
            (1, None, None, False),
            (2, None, None, True),
        ]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_a_struct_of_files_without_its_later_fields_is_not_null(spark: SparkSession, path: str) -> None:
    name = f"deltalog.`{path}`"
    spark.sql(f"CREATE TABLE {name} (id INT, s STRUCT<x: INT, d: TINYINT, v: VOID>) USING deltalog")
    spark.sql(f"INSERT INTO {name} VALUES (1, named_struct('x', NULL, 'd', 1, 'v', NULL)), (2, NULL)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN s.first INT FIRST")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN s.d TYPE DECIMAL(5, 1)")
    assert values(spark.table(name).select("id", "s.v").where("s IS NOT NULL")) == [(1, None)]


def test_rows_of_a_table_with_void_columns_are_changed(spark: SparkSession, path: str, table: str) -> None:
    spark.sql(f"INSERT INTO {table} (id, p) VALUES (4, 'b')")
    spark.sql(f"UPDATE {table} SET id = id + 10, b = NULL WHERE b IS NULL AND id <> 2")
    spark.sql(
        f"MERGE INTO {table} AS t USING (SELECT id + 13 AS id, b, s, p FROM {table} VERSION AS OF 1 WHERE id < 13) u "
        "ON t.id = u.id - 1 WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM {table} WHERE s.v IS NULL AND id = 2")
    ids = [row[0] for row in values(spark.table(table))]
    assert ids == [11, 14, 15, 16]
    assert (14, *FIRST[1:]) in values(spark.table(table))
    check_files(path)
    if "delta.enableChangeDataFeed" in DeltaTable(path).metadata().configuration:
        options = {"readChangeFeed": "true", "startingVersion": "0"}
        feed = spark.read.format("deltalog").options(**options).load(path)
        assert feed.schema["b"].dataType.simpleString() == "void"
        assert feed.where("id = 14 AND s.x = 5 AND b IS NULL").count() >= 1
    spark.conf.set("spark.deltalog.minSizeForExecutors", "0")
    try:
        spark.sql(f"OPTIMIZE {table}")
    finally:
        spark.conf.unset("spark.deltalog.minSizeForExecutors")
    assert [row[0] for row in values(spark.table(table))] == ids
    check_files(path)


def test_a_void_column_gets_a_type(spark: SparkSession, path: str, table: str) -> None:
    with pytest.raises((AnalysisException, SchemaMismatchError), match=r"(?i)`?b`?.*void"):
        spark.sql(f"INSERT INTO {table} (id, b, p) VALUES (4, 'x', 'b')")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN s.r.w TYPE DATE")
    new = spark.sql("SELECT 4 AS id, 'x' AS b, named_struct('v', array(1)) AS s, 'b' AS p")
    new.write.format("deltalog").mode("append").option("mergeSchema", "true").save(path)
    found = spark.table(table)
    assert found.schema.simpleString() == (
        "struct<id:int,b:string,s:struct<v:array<int>,x:int,r:struct<y:int,w:date>>,p:string>"
    )
    assert values(found) == [FIRST, SECOND, THIRD, (4, "x", ([1], None, None), "b")]
    spark.sql(f"ALTER TABLE {table} ADD COLUMN more VOID")
    assert values(spark.table(table).select("more")) == [(None,)] * 4
    spark.sql(f"DELETE FROM {table} WHERE id = 4 AND more IS NULL")
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING (SELECT 1 AS id, DATE '2020-01-01' AS more) u "
        "ON t.id = u.id WHEN MATCHED THEN UPDATE SET *"
    )
    assert str(values(spark.table(table).where("id = 1").select("more"))[0][0]) == "2020-01-01"


def test_new_tables_have_the_void_columns_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    data = spark.sql("SELECT 1 AS a, NULL AS b")
    uses: dict[str, Callable[[str, str], Any]] = {
        "save": lambda name, at: data.write.format("deltalog").save(at),
        "query": lambda name, at: spark.sql(
            f"CREATE TABLE {name} USING deltalog AS SELECT 1 AS a, NULL AS b"
        ),
        "writeTo": lambda name, at: data.writeTo(name).using("deltalog").create(),
        "saveAsTable": lambda name, at: data.write.format("deltalog").saveAsTable(name),
    }
    for kind, make in uses.items():
        at = str(tmp_path / kind)
        name = f"deltalog.`{at}`"
        make(name, at)
        assert values(spark.table(name)) == [(1, None)], kind
        data.write.format("deltalog").mode("append").save(at)
        assert values(spark.table(name)) == [(1, None)] * 2, kind
    typed = str(tmp_path / "typed")
    spark.sql("SELECT 1 AS a, 'x' AS b").write.format("deltalog").save(typed)
    data.write.format("deltalog").mode("append").save(typed)
    assert values(spark.read.format("deltalog").load(typed).select("b").where("b IS NULL")) == [(None,)]


def test_the_statement_that_shows_a_void_column_makes_it_again(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE voids (a INT, b VOID) USING deltalog LOCATION '{tmp_path}/t'")
    try:
        [shown] = spark.sql("SHOW CREATE TABLE voids").collect()
        spark.sql("DROP TABLE voids")
        spark.sql(shown.createtab_stmt.replace(f"{tmp_path}/t", f"{tmp_path}/u"))
        assert spark.table("voids").schema.simpleString() == "struct<a:int,b:void>"
    finally:
        spark.sql("DROP TABLE IF EXISTS voids")


@pytest.mark.parametrize("column", ["NULL", "array(NULL)", "map('k', NULL)", "named_struct('v', NULL)"])
def test_what_no_file_can_hold_is_refused_before_any_file_is_written(
    spark: SparkSession, path: str, column: str
) -> None:
    columns = f"{column} AS c" if column == "NULL" else f"1 AS a, {column} AS c"
    with pytest.raises((SchemaMismatchError, AnalysisException), match="void"):
        spark.sql(f"SELECT {columns}").write.format("deltalog").save(path)
    assert not list(Path(path).rglob("*.*"))


def test_tables_of_python_with_void_columns(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": pa.nulls(1)}), tmp_path / "f.parquet")
    convert_to_delta(tmp_path)
    write_deltalake(tmp_path, pa.table({"a": [2]}), mode="append")
    found = spark.read.format("deltalog").load(str(tmp_path))
    assert values(found) == [(1, None), (2, None)]
    assert found.where("b IS NOT NULL").count() == 0


@pytest.mark.parametrize("mode", ["none", "name"])
def test_void_columns_of_other_writers_are_read_whatever_their_files_have(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    properties = {} if mode == "none" else {"delta.columnMapping.mode": mode}

    def column(name: str, data_type: Any, number: int) -> dict[str, Any]:
        ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
        return field(name, data_type, metadata=ids if properties else {})

    fields = [
        column("a", "long", 1),
        column("b", "void", 2),
        column("s", struct(column("v", "void", 4), column("x", "long", 5)), 3),
    ]
    features = ["columnMapping"] if properties else []
    table = CraftedTable(tmp_path, fields, features=features, configuration=properties)
    names = ["c1", "c2", "c3", "c4", "c5"] if properties else ["a", "b", "s", "v", "x"]
    inner = [{names[3]: 5, names[4]: 6}]
    table.write("f.parquet", pa.table({names[0]: [1], names[1]: [5], names[2]: inner}))
    table.add("f.parquet", stats={"numRecords": 1, "nullCount": {names[0]: 0}})
    table.commit()
    found = spark.read.format("deltalog").load(str(tmp_path))
    assert values(found) == [(1, None, (None, 6))]
    for condition in ["b IS NULL", "s.v IS NULL", "s.v IS NULL OR a = 5", "b IS NULL AND a = 1"]:
        assert values(found.where(condition).select("a")) == [(1,)], condition


INTO_VOID = {
    "insert": "INSERT INTO {table} VALUES (1, NULL, NULL)",
    "query": "INSERT INTO {table} SELECT id, NULL, NULL FROM range(2)",
    "nested": "INSERT INTO {table} (a, s) SELECT id, named_struct('x', 1, 'v', NULL) FROM range(2)",
    "merge": "MERGE INTO {table} USING (SELECT id FROM range(2)) ON a = id "
    "WHEN NOT MATCHED THEN INSERT (a, b, s) VALUES (id, NULL, NULL)",
}


@pytest.mark.parametrize("kind", INTO_VOID)
def test_null_in_a_void_column_that_must_not_be_null_is_refused(
    spark: SparkSession, path: str, kind: str
) -> None:
    name = f"deltalog.`{path}`"
    required = "b VOID" if kind == "nested" else "b VOID NOT NULL"
    spark.sql(f"CREATE TABLE {name} (a LONG, {required}, s STRUCT<x: INT, v: VOID NOT NULL>) USING deltalog")
    with pytest.raises(Exception, match=r"(NOT_NULL_ASSERT_VIOLATION|'s\.v'|'b' is NOT NULL)"):
        spark.sql(INTO_VOID[kind].format(table=name))
    assert DeltaTable(path).version() == 0
    if kind == "query":
        for rows in (
            spark.sql("SELECT 1L AS a, NULL AS b, NULL AS s"),
            spark.sql("SELECT 1L AS a, NULL AS b"),
        ):
            with pytest.raises(InvalidArgumentError, match="'b' is NOT NULL"):
                rows.write.format("deltalog").mode("append").save(path)
        assert spark.table(name).count() == 0
    if kind == "nested":
        spark.sql(f"INSERT INTO {name} SELECT id, NULL, NULL FROM range(2)")
        assert values(spark.table(name)) == [(0, None, None), (1, None, None)]


def test_rows_are_checked_if_the_first_column_is_void(spark: SparkSession, path: str) -> None:
    name = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (b VOID, a INT NOT NULL, c INT GENERATED ALWAYS AS (a + 1)) USING deltalog"
    )
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (a > 0)")
    for statement in (
        "INSERT INTO {} (b, a) SELECT NULL, -1",
        "INSERT INTO {} (b, a, c) SELECT NULL, 1, 5",
        "MERGE INTO {} USING (SELECT id FROM range(1)) ON a = id WHEN NOT MATCHED THEN INSERT (a) VALUES (-1)",
    ):
        with pytest.raises(InvalidArgumentError, match=r"(positive|'c')"):
            spark.sql(statement.format(name))
    spark.sql(f"INSERT INTO {name} (b, a) SELECT NULL, 1")
    assert values(spark.table(name)) == [(None, 1, 2)]


def test_the_change_feed_has_void_columns(spark: SparkSession, path: str) -> None:
    name = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (b VOID, id INT, s STRUCT<v: VOID, x: INT>) USING deltalog TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"INSERT INTO {name} SELECT NULL, id, named_struct('v', NULL, 'x', id) FROM range(1, 4, 1, 1)")
    spark.sql(f"UPDATE {name} SET s.x = 20 WHERE id = 2")
    spark.sql(f"DELETE FROM {name} WHERE id = 3 AND b IS NULL")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN b TYPE STRING")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 1 AS id UNION ALL SELECT 4) u ON t.id = u.id WHEN MATCHED THEN "
        "UPDATE SET b = 'x' WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, NULL)"
    )
    columns = "_commit_version AS version, _change_type AS kind, id, s, s.v AS v, b"
    expected = [
        (1, "insert", 1, (None, 1), None, None),
        (1, "insert", 2, (None, 2), None, None),
        (1, "insert", 3, (None, 3), None, None),
        (2, "update_postimage", 2, (None, 20), None, None),
        (2, "update_preimage", 2, (None, 2), None, None),
        (3, "delete", 3, (None, 3), None, None),
        (5, "insert", 4, None, None, None),
        (5, "update_postimage", 1, (None, 1), None, "x"),
        (5, "update_preimage", 1, (None, 1), None, None),
    ]
    feed = spark.read.format("deltalog").option("readChangeFeed", "true").option("startingVersion", "0")
    assert values(feed.load(path).selectExpr(*columns.split(", "))) == expected
    before = feed.option("endingVersion", "3").load(path)
    assert values(before.selectExpr(*columns.split(", "))) == expected[:6]
    assert values(before.select("id", "s.v").where("s IS NULL OR b IS NOT NULL")) == []
    [found] = pa.table(DeltaTable(path).load_cdf(starting_version=5)).filter(pc.field("id") == 4).to_pylist()
    assert (found["b"], found["s"], found["_change_type"]) == (None, None, "insert")
