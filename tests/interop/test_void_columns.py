"""Both the JVM connector and deltalog create tables with void columns, and read and write the tables of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from tests.interop.conftest import Jvm
from tests.python.alter_support import action

TABLE = "(a BIGINT, b VOID, s STRUCT<x: BIGINT, v: VOID>) USING delta"
INNER = pa.struct([("x", pa.int64()), ("v", pa.null())])
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.null()), ("s", INNER)])


def row(number: int) -> dict[str, Any]:
    return {"a": number, "b": None, "s": None if number % 3 == 0 else {"x": number, "v": None}}


def data(*numbers: int) -> pa.Table:
    return pa.Table.from_pylist([row(number) for number in numbers], schema=SCHEMA)


def sql_rows(*numbers: int) -> str:
    def value(number: int) -> str:
        inner = f"named_struct('x', {number}L, 'v', NULL)" if row(number)["s"] else "NULL"
        return f"({number}, NULL, {inner})"

    return f"VALUES {', '.join(map(value, numbers))}"


def sorted_rows(found: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.sort_by("a").to_pylist()
    return rows


PROPERTIES = {
    "plain": {"own": "x"},
    "mapped": {"delta.columnMapping.mode": "name"},
    "with vectors": {"delta.enableDeletionVectors": "true", "delta.checkpoint.writeStatsAsStruct": "true"},
}


QUICK = {("plain", "connector"), ("mapped", "deltalog"), ("with vectors", "connector")}


@pytest.mark.parametrize(
    ("case", "creator"),
    [
        pytest.param(case, creator, marks=[] if (case, creator) in QUICK else [pytest.mark.thorough])
        for case in PROPERTIES
        for creator in ("connector", "deltalog")
    ],
)
def test_both_read_and_write_void_columns(jvm: Jvm, tmp_path: Path, case: str, creator: str) -> None:
    properties = PROPERTIES[case]
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    name = f"delta.`{tmp_path}`"
    if creator == "connector":
        jvm.run(f"CREATE TABLE {name} {TABLE} TBLPROPERTIES ({listed})")
    else:
        jvm.run(f"CREATE TABLE delta.`{tmp_path / 'like'}` {TABLE}")
        DeltaTable.create(tmp_path, SCHEMA, configuration=properties)
        schemas = [action(at, 0, "metaData")["schemaString"] for at in (tmp_path, tmp_path / "like")]
        assert case == "mapped" or schemas[0] == schemas[1]
    jvm.run(f"INSERT INTO {name} {sql_rows(1, 2, 3)}")
    write_deltalake(tmp_path, data(4, 5, 6), mode="append")

    def check(*numbers: int) -> None:
        expected = [row(number) for number in numbers]
        table = DeltaTable(tmp_path)
        assert sorted_rows(pa.table(table.to_arrow())) == expected
        [(found, _)] = jvm.versions(tmp_path, [table.version()])
        assert sorted_rows(found) == expected
        assert pa.table(table.to_arrow(predicate="b IS NULL")).num_rows == len(numbers)
        assert jvm.query(f"SELECT a FROM {name} WHERE b IS NULL AND s.v IS NULL").num_rows == len(numbers)

    check(1, 2, 3, 4, 5, 6)
    jvm.run(f"DELETE FROM {name} WHERE a = 4")
    DeltaTable(tmp_path).delete("a = 1")
    jvm.run(
        f"MERGE INTO {name} t USING ({sql_rows(2, 7)} u(a, b, s)) ON t.a = u.a WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    DeltaTable(tmp_path).create_checkpoint()
    check(2, 3, 5, 6, 7)
    jvm.run(f"OPTIMIZE {name}")
    DeltaTable(tmp_path).update({"b": "NULL"})
    check(2, 3, 5, 6, 7)

    # One engine gives the void column a type, and the other engine reads and writes it.
    jvm.run(f"ALTER TABLE {name} ALTER COLUMN b TYPE STRING")
    write_deltalake(tmp_path, pa.table({"a": [8], "b": ["x"]}), mode="append")
    DeltaTable(tmp_path).alter.widen_column("s.v", "date")
    assert jvm.query(f"SELECT a FROM {name} WHERE b = 'x' AND s.v IS NULL")["a"].to_pylist() == [8]
    jvm.run(f"INSERT INTO {name} VALUES (9, 'y', named_struct('x', 9, 'v', DATE '2020-01-01'))")
    [found] = pa.table(DeltaTable(tmp_path).to_arrow(predicate="a = 9")).to_pylist()
    assert (found["b"], str(found["s"]["v"])) == ("y", "2020-01-01")


def test_spark_with_deltalog_continues_a_table_of_the_connector(
    jvm: Jvm, spark: SparkSession, tmp_path: Path
) -> None:
    jvm.run(f"CREATE TABLE delta.`{tmp_path}` {TABLE}")
    jvm.run(f"INSERT INTO delta.`{tmp_path}` {sql_rows(1, 2, 3)}")
    ours = f"deltalog.`{tmp_path}`"
    spark.sql(f"INSERT INTO {ours} {sql_rows(4, 5)}")
    spark.sql(f"UPDATE {ours} SET s.x = 10 * s.x WHERE a IN (1, 4)")
    found = sorted_rows(jvm.query(f"SELECT * FROM delta.`{tmp_path}`"))
    assert found == sorted_rows(spark.table(ours).toArrow())
    assert [one["s"] and one["s"]["x"] for one in found] == [10, 2, None, 40, 5]
