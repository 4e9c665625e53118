"""Statements first read the columns of their filters. Then they read the other columns, but only pages that contain a
row to change.
"""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from deltalog import DeltaTable, MissingFileError
from tests.spark.statement_tables import VECTORS

ROWS = 150_000
"""The number of rows. It is enough for several pages of at most 20,000 rows, and more than are examined to decide how
to read.
"""

KINDS: dict[str, tuple[dict[str, str], bool]] = {
    "plain": (VECTORS, False),
    "mapped, in partitions": ({**VECTORS, "delta.columnMapping.mode": "name"}, True),
    "mapped by id": ({**VECTORS, "delta.columnMapping.mode": "id"}, False),
    "tracked": ({**VECTORS, "delta.enableRowTracking": "true"}, False),
    "with a feed": ({**VECTORS, "delta.enableChangeDataFeed": "true"}, False),
    "rewriting": ({}, False),
}


def data(spark: SparkSession) -> DataFrame:
    """Returns rows in a single task. The column `k` has all numbers below ROWS, in random order."""
    return spark.range(0, ROWS, numPartitions=1).selectExpr(
        "id",
        f"(id * 7919) % {ROWS} AS k",
        "CAST(id % 2 AS INT) AS p",
        "IF(id % 13 = 0, NULL, sha2(CAST(id AS STRING), 256)) AS s",
        "named_struct('d', id / 4, 'a', IF(id % 7 = 0, NULL, array(id, id + 1))) AS n",
        "CAST(id AS DECIMAL(12, 2)) AS c",
        "CAST(0 AS BIGINT) AS v",
    )


def created(spark: SparkSession, path: str, kind: str = "plain") -> str:
    properties, is_partitioned = KINDS[kind]
    writer = data(spark).write.format("deltalog").options(**properties)
    (writer.partitionBy("p") if is_partitioned else writer).save(path)
    return f"deltalog.`{path}`"


def check(spark: SparkSession, path: str, expected: DataFrame) -> None:
    found = spark.read.format("deltalog").load(path)
    assert found.exceptAll(expected).take(3) == []
    assert found.count() == expected.count()


def position_of(spark: SparkSession, k: int) -> int:
    return int(data(spark).where(f"k = {k}").collect()[0]["id"])


def damage_first_page(path: str, column: int) -> None:
    """Makes the first page of a column unreadable. Reading it would fail, because the file has checksums of pages."""
    (file,) = Path(path).glob("*.parquet")
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(column)
    with file.open("r+b") as bytes_:
        bytes_.seek(chunk.data_page_offset + 1024)
        bytes_.write(bytes(4096))


@pytest.mark.parametrize("statement", ["UPDATE", "MERGE"])
def test_pages_without_a_row_to_change_are_not_read(spark: SparkSession, path: str, statement: str) -> None:
    table = created(spark, path)
    last = data(spark).where(f"id = {ROWS - 1}").collect()[0]
    damage_first_page(path, column=3)
    with pytest.raises((Py4JJavaError, PySparkException), match="FAILED_READ_FILE"):
        spark.read.format("deltalog").load(path).agg(sf.max("s")).collect()
    if statement == "UPDATE":
        changed = spark.sql(f"UPDATE {table} SET v = 1 WHERE k = {last.k}").collect()[0][0]
    else:
        changed = spark.sql(
            f"MERGE INTO {table} t USING (SELECT {last.k}L AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 1"
        ).collect()[0][0]
    assert changed == 1
    found = spark.read.format("deltalog").load(path).where("v = 1")
    # The changed row is now in the new file. Reading the old file would still fail.
    (new,) = [file for file in Path(path).glob("*.parquet") if pq.read_metadata(file).num_rows == 1]
    row = spark.read.parquet(str(new)).collect()[0]
    assert (row.id, row.k, row.p, row.s, row.n, row.c, row.v) == (*last[:6], 1)
    assert found.select("k").collect() == [(last.k,)]


@pytest.mark.parametrize("kind", ["plain", "rewriting"])
def test_statements_do_not_pass_over_files_that_cannot_be_read(
    spark: SparkSession, path: str, kind: str
) -> None:
    """If options allow it, reads may ignore missing files. Statements must not, because the rows of such files would
    be lost without an error.
    """
    created(spark, path, kind)
    damage_first_page(path, column=3)
    options = "'ignoreCorruptFiles' = 'true', 'IGNOREMISSINGFILES' = 'true'"
    spark.sql(f"CREATE TABLE damaged USING deltalog OPTIONS ({options}) LOCATION '{path}'")
    merge = "MERGE INTO damaged t USING (SELECT explode(array(5L, 6L)) AS k) s ON t.k = s.k"
    try:
        assert len(spark.table("damaged").select("s").collect()) < ROWS
        for statement in (
            "DELETE FROM damaged WHERE s IS NULL",
            "UPDATE damaged SET v = 1, s = concat(s, 'x') WHERE k % 2 = 0",
            f"{merge} WHEN NOT MATCHED BY SOURCE AND t.s IS NULL THEN DELETE",
        ):
            with pytest.raises((Py4JJavaError, PySparkException), match="FAILED_READ_FILE"):
                spark.sql(statement)
        for file in Path(path).glob("*.parquet"):
            file.unlink()
        assert spark.table("damaged").collect() == []
        inserts = f"{merge} WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
        for statement in ("DELETE FROM damaged WHERE k = 5", "UPDATE damaged SET v = 1 WHERE k = 5", inserts):
            with pytest.raises(MissingFileError):
                spark.sql(statement)
    finally:
        spark.sql("DROP TABLE damaged")
    assert DeltaTable(path).version() == 0


@pytest.mark.newest
@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("plain", "rewriting") else pytest.param(kind, marks=pytest.mark.thorough)
        for kind in KINDS
    ],
)
def test_few_and_many_rows_are_changed_correctly(spark: SparkSession, path: str, kind: str) -> None:
    table = created(spark, path, kind)
    expected = data(spark)
    keys = [5, 6, 70_000, ROWS - 1]
    at = position_of(spark, 70_000)
    spark.createDataFrame([(key,) for key in [*keys, ROWS + 5]], "k long").createOrReplaceTempView("source")
    # The statements below change a single row, neighboring rows (some of them are already deleted), rows everywhere in
    # the table, and rows that match a source.
    near = f"id BETWEEN {at - 20} AND {at + 20} AND k % 3 <> 1"
    spark.sql(f"DELETE FROM {table} WHERE k IN (5, 77) OR id = {at - 1}")
    expected = expected.where(f"k NOT IN (5, 77) AND id <> {at - 1}")
    for condition in ("k = 6", near, "k % 50 = 0", "s IS NULL AND k < 30", "n.d = 12.5 OR n.a[0] = 99"):
        spark.sql(f"UPDATE {table} SET v = v + 1, s = concat(s, 'x') WHERE {condition}")
        changed = sf.expr(condition)
        expected = expected.withColumns(
            {
                "v": sf.when(changed, sf.col("v") + 1).otherwise(sf.col("v")),
                "s": sf.when(changed, sf.concat("s", sf.lit("x"))).otherwise(sf.col("s")),
            }
        )
    spark.sql(
        f"MERGE INTO {table} t USING source s ON t.k = s.k WHEN MATCHED AND t.k = 6 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET c = 1.5 WHEN NOT MATCHED THEN INSERT (id, k, p, v) VALUES (-1, s.k, 1, 9)"
    )
    is_key = sf.col("k").isin(keys)
    expected = expected.where("k <> 6").withColumn(
        "c", sf.when(is_key, sf.lit(1.5)).otherwise(sf.col("c")).cast("decimal(12, 2)")
    )
    nothing = {"s": "string", "n": "struct<d: double, a: array<bigint>>", "c": "decimal(12, 2)"}
    for key in (5, ROWS + 5):
        row = spark.range(1).selectExpr(
            "-1L AS id",
            f"{key}L AS k",
            "1 AS p",
            *(f"CAST(NULL AS {t}) AS {c}" for c, t in nothing.items()),
            "9L AS v",
        )
        expected = expected.unionByName(row)
    check(spark, path, expected)


def test_conditions_may_raise_errors_for_deleted_rows(spark: SparkSession, path: str) -> None:
    data = spark.range(0, ROWS, numPartitions=1).selectExpr(
        "id", "IF(id = 7, 'x', CAST(id AS STRING)) AS s", "0 AS v"
    )
    data.write.format("deltalog").options(**VECTORS).save(path)
    table = f"deltalog.`{path}`"
    spark.sql(f"DELETE FROM {table} WHERE s = 'x'")
    changed = spark.sql(f"UPDATE {table} SET v = 1 WHERE CAST(s AS INT) IN (8, {ROWS - 1})").collect()
    assert changed[0][0] == 2
    found = spark.read.format("deltalog").load(path).where("v = 1").select("id")
    assert sorted(row.id for row in found.collect()) == [8, ROWS - 1]


def test_conditions_may_raise_errors_for_rows_that_a_subquery_excludes(
    spark: SparkSession, path: str
) -> None:
    data = spark.range(0, ROWS, numPartitions=1).selectExpr(
        "id", "IF(id < 10, 'x', CAST(id AS STRING)) AS s", "0 AS v"
    )
    data.write.format("deltalog").options(**VECTORS).save(path)
    excluded = "id >= (SELECT max(id) FROM range(11))"
    changed = spark.sql(f"UPDATE deltalog.`{path}` SET v = 1 WHERE {excluded} AND CAST(s AS INT) = 10")
    assert changed.collect()[0][0] == 1
    with pytest.raises((Py4JJavaError, PySparkException), match="CAST_INVALID_INPUT"):
        spark.sql(f"UPDATE deltalog.`{path}` SET v = 1 WHERE CAST(s AS INT) = 10")


def test_keys_are_computed_for_rows_that_can_match(spark: SparkSession, path: str) -> None:
    spark.range(0, 100, numPartitions=4).selectExpr("id", "'s' AS s").write.format("deltalog").save(path)
    source = spark.createDataFrame([(0,), (4,), (None,), (5,)], "x long")
    source.createOrReplaceTempView("source")
    spark.sql(
        f"MERGE INTO deltalog.`{path}` t USING source ON x <> 0 AND t.id = 100 div x "
        "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT (id, s) VALUES (-1, 'n')"
    )
    found = spark.read.format("deltalog").load(path).where("s <> 's'").collect()
    assert sorted(map(tuple, found)) == [(-1, "n"), (-1, "n"), (20, "m"), (25, "m")]


@pytest.mark.parametrize(("rows", "width"), [(9_000, 10), (9_000, 300), (25_000, 10)])
def test_the_keys_of_a_source_may_be_few_or_many(
    spark: SparkSession, path: str, rows: int, width: int
) -> None:
    """A few keys of a source are kept as a set. If there are many keys, or if they are long, only their range is
    kept.
    """
    key = f"lpad(CAST(id AS STRING), {width}, '0')"
    target = spark.range(0, 40_000, numPartitions=3).selectExpr(f"{key} AS k", "0 AS v")
    target.write.format("deltalog").save(path)
    source = spark.range(1_000, 1_000 + rows, numPartitions=3).where("id % 2 = 0")
    source.selectExpr(f"IF(id % 10 = 0, NULL, {key}) AS k").createOrReplaceTempView("source")
    spark.sql(
        f"MERGE INTO deltalog.`{path}` t USING source s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 1"
    )
    found = (
        spark.read.format("deltalog").load(path).where("v = 1").agg(sf.count("*"), sf.min("k"), sf.max("k"))
    )
    numbers = [number for number in range(1_000, 1_000 + rows) if number % 2 == 0 and number % 10 != 0]
    bounds = [str(number).zfill(width) for number in (numbers[0], numbers[-1])]
    assert tuple(found.collect()[0]) == (len(numbers), *bounds)
