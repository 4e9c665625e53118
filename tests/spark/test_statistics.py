"""Spark computes and uses statistics and Bloom filters of files."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from deltalog import CorruptDataError, DeltaTable, write_deltalake
from deltalog.tables import DeltaTable as SparkTable
from tests.interop.pages import destroy_pages

pytestmark = pytest.mark.newest

EVEN = """SELECT id * 2 AS key, concat('t', id * 2) AS text, CAST(id * 2 AS DECIMAL(20, 1)) AS money
    FROM range(0, 20000, 1, 1)"""


def test_analyze_computes_statistics(spark: SparkSession, path: str) -> None:
    spark.sql(
        f"""CREATE TABLE a USING deltalog LOCATION '{path}'
        TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0') AS SELECT id FROM range(10)"""
    )
    try:
        spark.sql("ALTER TABLE a SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '32')")
        planned = spark.sql("CALL deltalog.recompute_statistics('a', dry_run => true)").first()
        assert planned is not None
        files = planned.numFilesChosen
        assert files > 0
        [done] = spark.sql("ANALYZE TABLE a COMPUTE DELTA STATISTICS;").collect()
        assert (done.numUpdatedFiles, done.numFilesGivenUp) == (files, 0)
        assert spark.sql("DESCRIBE HISTORY a LIMIT 1").collect()[0].operation == "COMPUTE STATS"
        [again] = spark.sql(f"ANALYZE TABLE deltalog.`{path}` COMPUTE DELTA STATISTICS").collect()
        assert again.numFilesChosen == 0
        [row] = spark.sql("CALL deltalog.recompute_statistics('a', all_files => true)").collect()
        assert (row.numFilesChosen, row.numUpdatedFiles) == (files, 0)
        assert spark.table("a").count() == 10
        for statement in (
            "ANALYZE TABLE a COMPUTE DELTA",
            "ANALYZE TABLE a COMPUTE DELTA STATISTICS FOR ALL COLUMNS",
        ):
            with pytest.raises(ParseException):
                spark.sql(statement)
    finally:
        spark.sql("DROP TABLE a")


def test_a_verb_computes_statistics(spark: SparkSession, path: str) -> None:
    write_deltalake(path, pa.table({"id": [1, 2]}), configuration={"delta.dataSkippingNumIndexedCols": "0"})
    DeltaTable(path).alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "32"})
    table = SparkTable.forPath(spark, path)
    [done] = table.recomputeStatistics().collect()
    assert (done.numUpdatedFiles, done.numFilesChosen) == (1, 1)
    assert table.recomputeStatistics(allFiles=True).collect()[0].numFilesChosen == 1
    assert table.recomputeStatistics().collect()[0].numFilesChosen == 0


def test_sparks_own_statement_stays(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE plain USING parquet AS SELECT id FROM range(10)")
    try:
        spark.sql("ANALYZE TABLE plain COMPUTE STATISTICS FOR ALL COLUMNS")
        described = {row.col_name: row.data_type for row in spark.sql("DESCRIBE EXTENDED plain").collect()}
        assert "10 rows" in described["Statistics"]
    finally:
        spark.sql("DROP TABLE plain")


@pytest.mark.parametrize("options", [{}, {"deltalog.bloomFilterNdv": "20000"}])
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_files_of_spark_have_filters_that_scans_use(
    spark: SparkSession, path: str, mapping: str, options: dict[str, str]
) -> None:
    properties = {
        "deltalog.bloomFilterColumns": "key, text, money",
        "delta.columnMapping.mode": mapping,
        **options,
    }
    written = spark.sql(EVEN).write.format("deltalog").option("parquet.enable.dictionary", "false")
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    spark.sql(
        f"CREATE TABLE f (key BIGINT, text STRING, money DECIMAL(20, 1)) USING deltalog LOCATION '{path}' "
        f"TBLPROPERTIES ({listed})"
    )
    try:
        written.mode("append").save(path)
        table = DeltaTable(path)
        assert [table.count(f"key = {key}") for key in (777, 778)] == [0, 1]
        destroy_pages(Path(path))
        for absent in ("key = 777", "text = 't777'", "money = 777.0", "key IN (1, 3) OR text <=> 't5'"):
            assert read(path, absent) == 0, absent
        with pytest.raises(CorruptDataError):
            read(path, "key = 778")
    finally:
        spark.sql("DROP TABLE f")


def read(path: str, predicate: str) -> int:
    """Returns the number of rows that a condition selects. It reads the files, because `count` might be answered from
    the log.
    """
    import pyarrow as pa

    return int(pa.table(DeltaTable(path).to_arrow(predicate=predicate)).num_rows)


def test_spark_uses_bloom_filters_of_our_files(spark: SparkSession, path: str) -> None:
    import pyarrow as pa

    even = [2 * key for key in range(20_000)]
    rows: dict[str, Any] = {"key": even, "text": [f"t{key}" for key in even]}
    write_deltalake(path, pa.table(rows), configuration={"deltalog.bloomFilterColumns": "key, text"})
    files = spark.read.option("parquet.filter.dictionary.enabled", "false").parquet(path)
    for present, absent in (("key = 778", "key = 777"), ("text = 't778'", "text = 't777'")):
        assert (files.where(present).count(), files.where(absent).count()) == (1, 0)
    destroy_pages(Path(path))
    for absent in ("key = 777", "text = 't777'", "key IN (1, 3)"):
        assert files.where(absent).collect() == [], absent
    with pytest.raises(Py4JJavaError, match=r"(?i)parquet"):
        files.where("key = 778").collect()


def test_doubles_of_spark_have_a_maximum_unless_there_is_nan(spark: SparkSession, path: str) -> None:
    """Spark's Parquet writer records NaN as the maximum if a column contains NaN, so any other maximum is reliable."""
    nan = "DOUBLE('NaN')"
    files = ["0D, 1D", f"{nan}, 10D", f"10D, {nan}, 11D", f"-0.0D, {nan}", "20D, 21D", "30D, 31D", nan]
    spark.sql(f"CREATE TABLE deltalog.`{path}` (f DOUBLE, g FLOAT) USING deltalog")
    for values in files:
        rows = f"SELECT /*+ COALESCE(1) */ v, v FROM (SELECT explode(array({values})) AS v)"
        spark.sql(f"INSERT INTO deltalog.`{path}` {rows}")
    table = DeltaTable(path)
    stats = pa.table(table.files())["stats"].to_pylist()
    for column in ("f", "g"):
        assert sorted(str(found["maxValues"][column]) for found in stats) == [
            *("1.0", "21.0", "31.0"),
            *["None"] * 4,
        ]
        for condition in (f"{column} > 25", f"{column} >= 11", f"NOT ({column} <= 1)", f"{column} < 1"):
            expected = spark.table(f"deltalog.`{path}`").where(condition).count()
            assert table.count(condition) == expected, condition
        assert len(table.file_uris(f"{column} > 25")) == 5


def test_statements_do_not_rely_on_bounds_of_other_writers(spark: SparkSession, path: str) -> None:
    """Statements do not rely on bounds of other writers: `deltalake` writes 2^63 - 1 as the maximum of this file,
    although it has greater values.
    """
    numbers = [Decimal("12345678901234567890123"), Decimal(5)]
    deltalake.write_deltalake(path, pa.table({"d": pa.array(numbers, pa.decimal128(38, 0))}))
    [done] = spark.sql(f"DELETE FROM deltalog.`{path}` WHERE d < 100000000000000000000BD").collect()
    assert done[0] == 1
    assert [row.d for row in spark.table(f"deltalog.`{path}`").collect()] == numbers[:1]
