"""An old file may contain none of the fields of a struct that a query reads: the fields were added later, or all
fields in the file were dropped. The struct must not become NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from deltalog import DeltaTable

READER = "spark.sql.parquet.enableVectorizedReader"
LEGACY = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
PROPERTIES = {
    "plain": "'own' = 'x'",
    "by name": "'delta.columnMapping.mode' = 'name'",
    "by id": "'delta.columnMapping.mode' = 'id', 'delta.enableDeletionVectors' = 'true', "
    "'delta.enableRowTracking' = 'true'",
}
COLUMNS = (
    "id INT, s STRUCT<x: DATE, more: STRUCT<list: ARRAY<INT>>>, a ARRAY<STRUCT<x: INT>>, "
    "m MAP<STRING, STRUCT<x: STRING>>, k MAP<STRUCT<x: INT>, INT>"
)
ROWS = """
    (1, named_struct('x', DATE '2020-01-01', 'more', named_struct('list', array(1, 2, NULL))),
     array(named_struct('x', 1), NULL), map('k', named_struct('x', 'v')), map(named_struct('x', 1), 1)),
    (2, named_struct('x', NULL, 'more', named_struct('list', NULL)), array(), map('k', NULL), NULL),
    (3, named_struct('x', NULL, 'more', NULL), array(NULL), map(), NULL),
    (4, NULL, NULL, NULL, NULL)
"""
LATER = ("s.late INT", "s.more.late STRING", "a.element.late INT", "m.value.late STRUCT<y: INT>")


@pytest.fixture(params=["true", "false"], ids=["in batches", "by rows"])
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    spark.conf.set(READER, request.param)
    spark.conf.set(LEGACY, "true")
    yield
    spark.conf.unset(READER)
    spark.conf.unset(LEGACY)


def reads_maps(spark: SparkSession) -> bool:
    """Returns whether Spark's row-based reader can read a map whose values have none of the requested fields."""
    return not spark.version.startswith("4.0.") or spark.conf.get(READER) == "true"


def made(spark: SparkSession, path: str, kind: str) -> str:
    name = f"deltalog.`{path}`"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING deltalog TBLPROPERTIES ({PROPERTIES[kind]})")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {ROWS}")
    for column in LATER:
        spark.sql(f"ALTER TABLE {name} ADD COLUMN {column}")
    return name


def values(frame: DataFrame) -> list[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return tuple(map(plain, value))
        return {plain(k): plain(v) for k, v in value.items()} if isinstance(value, dict) else value

    return [plain(row) for row in frame.orderBy("id").collect()]


THOROUGH = pytest.param("by name", marks=pytest.mark.thorough)


@pytest.mark.parametrize("kind", ["plain", THOROUGH, "by id"])
def test_a_struct_is_not_null_because_its_file_lacks_the_fields_that_are_read(
    spark: SparkSession, path: str, kind: str, reader: None
) -> None:
    name = made(spark, path, kind)
    spark.sql(
        f"INSERT INTO {name} SELECT 5, named_struct('x', NULL, 'more', named_struct('list', NULL, 'late', 'x'), "
        "'late', 7), array(named_struct('x', 1, 'late', 2)), map('k', named_struct('x', 'v', 'late', "
        "named_struct('y', 3))), NULL"
    )
    found = spark.table(name)
    assert values(found.selectExpr("id", "s.late", "s IS NULL")) == [
        (1, None, False),
        (2, None, False),
        (3, None, False),
        (4, None, True),
        (5, 7, False),
    ]
    assert values(found.where("s IS NOT NULL").select("id", "s.late")) == [
        (1, None),
        (2, None),
        (3, None),
        (5, 7),
    ]
    assert values(found.where("s.late IS NULL AND s IS NOT NULL").select("id")) == [(1,), (2,), (3,)]
    assert values(found.selectExpr("id", "s.more.late", "s.more IS NULL", "s.late")) == [
        (1, None, False, None),
        (2, None, False, None),
        (3, None, True, None),
        (4, None, True, None),
        (5, "x", False, 7),
    ]
    assert values(found.select("id", "a.late")) == [
        (1, (None, None)),
        (2, ()),
        (3, (None,)),
        (4, None),
        (5, (2,)),
    ]
    assert values(found.selectExpr("id", "explode(a.late)")) == [(1, None), (1, None), (3, None), (5, 2)]
    assert values(found.where("id = 1").selectExpr("id", "s.more.list")) == [(1, (1, 2, None))]
    if not reads_maps(spark):
        return
    assert values(found.selectExpr("id", "transform(map_values(m), v -> v.late.y)")) == [
        (1, (None,)),
        (2, (None,)),
        (3, ()),
        (4, None),
        (5, (3,)),
    ]
    assert values(found.selectExpr("id", "map_values(m).late")) == [
        (1, (None,)),
        (2, (None,)),
        (3, ()),
        (4, None),
        (5, ((3,),)),
    ]


@pytest.mark.parametrize("kind", [THOROUGH, "by id"])
def test_a_struct_is_not_null_because_all_fields_of_its_file_were_dropped(
    spark: SparkSession, path: str, kind: str, reader: None
) -> None:
    name = made(spark, path, kind)
    if not reads_maps(spark):
        spark.sql(f"ALTER TABLE {name} DROP COLUMN m")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN m MAP<STRING, STRUCT<x: INT, late: INT>> AFTER a")
    spark.sql(f"ALTER TABLE {name} DROP COLUMNS (s.x, s.more.list, a.element.x, m.value.x)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO x")
    expected = [
        (1, ((None,), None), ((None,), None), {"k": (None,)}),
        (2, ((None,), None), (), {"k": None}),
        (3, (None, None), (None,), {}),
        (4, None, None, None),
    ]
    if not reads_maps(spark):
        expected = [(*row[:3], None) for row in expected]
    assert values(spark.table(name).drop("k")) == expected
    rows = spark.table(name).where("id < 4").selectExpr("id", "x", "a", "m")
    assert values(rows) == expected[:3]
    assert values(rows.repartition(2)) == expected[:3]
    assert values(spark.table(name).select("id", "x.late").where("x IS NULL")) == [(4, None)]
    found = {row["id"]: row for row in pa.table(DeltaTable(path).to_arrow()).to_pylist()}
    assert found[1]["x"] == found[2]["x"] == {"more": {"late": None}, "late": None}
    assert found[3]["x"] == {"more": None, "late": None}
    assert found[4]["x"] is None
    spark.sql(f"UPDATE {name} SET id = id + 10 WHERE x IS NOT NULL AND x.late IS NULL")
    assert [row[0] for row in values(spark.table(name))] == [4, 11, 12, 13]
    assert values(spark.table(name).where("id = 12").selectExpr("id", "x.more")) == [(12, (None,))]
    spark.sql(f"DELETE FROM {name} WHERE x IS NULL")
    spark.sql(f"OPTIMIZE {name}")
    assert values(spark.table(name).drop("k")) == [(row[0] + 10, *row[1:]) for row in expected[:3]]
