"""Spark's tasks generate the values of identity columns (PROTOCOL, "Identity Columns")."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from deltalog.errors import InvalidArgumentError, SchemaMismatchError
from tests.crafted import CraftedTable, field

MARK = "delta.identity.highWaterMark"


def identity(start: int, step: int, mark: int | None = None, *, explicit: bool = False) -> dict[str, Any]:
    """Returns the metadata of an identity column."""
    metadata = {"start": start, "step": step, "allowExplicitInsert": explicit, "highWaterMark": mark}
    return {f"delta.identity.{key}": value for key, value in metadata.items() if value is not None}


def crafted(
    path: Path, metadata: dict[str, Any], partition_columns: tuple[str, ...] = (), *, nullable: bool = False
) -> str:
    """Creates an empty table with the identity column `id`."""
    column = {**field("id", "long", metadata), "nullable": nullable}
    fields = [field("p", "integer"), column, field("n", "long")]
    CraftedTable(
        path,
        fields,
        partition_columns=partition_columns,
        writer_features=["identityColumns", "checkConstraints"],
        configuration={"delta.constraints.c": "id IS NOT NULL"},
    ).commit()
    return str(path)


def append(spark: SparkSession, uri: str, rows: int, tasks: int) -> None:
    data = spark.range(0, rows, 1, tasks).selectExpr("id AS n", "CAST(id % 3 AS INT) AS p")
    data.write.format("deltalog").mode("append").save(uri)


def ids(uri: str) -> list[int]:
    return sorted(row["id"] for row in DeltaTable(uri).to_pyarrow_table(columns=["id"]).to_pylist())


def mark(uri: str) -> int | None:
    schema = json.loads(DeltaTable(uri).schema().to_json())
    found: list[int | None] = [
        column["metadata"].get(MARK) for column in schema["fields"] if column["name"] == "id"
    ]
    return found[0]


@pytest.mark.parametrize(
    ("start", "step", "before", "partition_columns"),
    [(1, 1, None, ("id",)), (-5, -3, -20, ()), (7, 10, 3, ("p",))],
)
def test_no_value_is_given_twice(
    spark: SparkSession,
    tmp_path: Path,
    start: int,
    step: int,
    before: int | None,
    partition_columns: tuple[str, ...],
) -> None:
    uri = crafted(tmp_path / "t", identity(start, step, before), partition_columns)
    last = before
    known: set[int] = set()
    for rows, tasks in [(7, 3), (1, 4)]:
        append(spark, uri, rows, tasks)
        new = set(ids(uri)) - known
        assert len(ids(uri)) == len(known) + len(new) == len(known) + rows
        for value in new:
            assert (value - start) % step == 0
            assert (value - start) // step >= 0
            assert last is None or (value - last) * step > 0
        last = mark(uri)
        assert last == (max(new) if step > 0 else min(new))
        known |= new


def test_rows_of_one_task_are_numbered_without_gaps(spark: SparkSession, tmp_path: Path) -> None:
    uri = crafted(tmp_path / "t", identity(1, 1))
    append(spark, uri, 5, 1)
    parts = spark.range(2).selectExpr("id AS n").coalesce(1)
    parts.union(parts).write.format("deltalog").mode("append").save(uri)
    assert ids(uri) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert mark(uri) == 9


def test_inserts_that_leave_the_column_out(spark: SparkSession, tmp_path: Path) -> None:
    # Spark itself refuses rows that lack a NOT NULL column.
    uri = crafted(tmp_path / "t", identity(10, 10), nullable=True)
    spark.sql(f"INSERT INTO deltalog.`{uri}` (n, p) VALUES (1, 1), (2, 2)")
    spark.sql(f"INSERT INTO deltalog.`{uri}` (p) VALUES (3)")
    assert len(set(ids(uri))) == 3
    assert mark(uri) == max(ids(uri))
    with pytest.raises(SchemaMismatchError, match="'id' are always generated"):
        spark.sql(f"INSERT INTO deltalog.`{uri}` VALUES (1, 5, 1)")
    with pytest.raises(SchemaMismatchError, match="'id' are always generated"):
        spark.range(1).write.format("deltalog").mode("append").save(uri)
    assert DeltaTable(uri).version() == 2


def test_values_of_the_user_are_kept_where_they_are_allowed(spark: SparkSession, tmp_path: Path) -> None:
    uri = crafted(tmp_path / "t", identity(1, 1, explicit=True))
    spark.range(100, 102).write.format("deltalog").mode("append").save(uri)
    assert (ids(uri), mark(uri)) == ([100, 101], None)
    append(spark, uri, 2, 1)
    assert (ids(uri), mark(uri)) == ([1, 2, 100, 101], 2)


def test_a_value_that_does_not_fit_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    uri = crafted(tmp_path / "t", identity(1, 1, 2**63 - 3))
    append(spark, uri, 1, 1)
    for rows in (2, 1):
        if rows == 1:
            append(spark, uri, 1, 1)
        with pytest.raises(InvalidArgumentError, match="'id' has no further values"):
            append(spark, uri, 2, 1)
    assert (len(ids(uri)), mark(uri)) == (2, 2**63 - 1)
    assert len(list(Path(uri).rglob("*.parquet"))) == 2


def test_a_write_without_rows_moves_no_mark(spark: SparkSession, tmp_path: Path) -> None:
    uri = crafted(tmp_path / "t", identity(1, 1))
    append(spark, uri, 0, 2)
    assert mark(uri) is None


def test_an_insert_leaves_columns_out_that_are_computed_and_not_null(spark: SparkSession, path: str) -> None:
    """Every form of INSERT into a table by name may leave out columns that are computed and NOT NULL, for which
    Spark's analyzer would otherwise require a value.
    """
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY, n INT NOT NULL, "
        "twice INT NOT NULL GENERATED ALWAYS AS (n * 2)) USING deltalog"
    )
    spark.sql(f"INSERT INTO {table} (n) VALUES (1), (2)")
    spark.sql(f"INSERT INTO {table} BY NAME SELECT 3 AS n")
    spark.range(4, 5).selectExpr("CAST(id AS INT) AS n").writeTo(table).append()
    spark.sql(f"INSERT INTO {table} (twice, n) VALUES (10, 5)")
    rows = DeltaTable(path).to_pyarrow_table(columns=["id", "n", "twice"]).to_pylist()
    assert sorted((row["n"], row["twice"]) for row in rows) == [(n, 2 * n) for n in range(1, 6)]
    assert len({row["id"] for row in rows}) == 5
    for statement, words in (
        (f"INSERT INTO {table} (twice) VALUES (1)", "(?i)cannot find data.*`n`|null"),
        (f"INSERT INTO {table} (n) VALUES (NULL)", "(?i)null"),
        (f"INSERT INTO {table} (id, n) VALUES (9, 9)", "always generated"),
        (f"INSERT INTO {table} (nn) VALUES (9)", "(?i)nn"),
    ):
        with pytest.raises(Exception, match=words):
            spark.sql(statement)
    assert len(ids(path)) == 5
