"""If Spark's executors write the files of deltalog's OPTIMIZE, the JVM connector can read the table and continue to
write to it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog
from deltalog.spark.sql.division import MIN_SIZE
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm


@pytest.mark.parametrize(
    "mapping", [pytest.param(mapping, marks=pytest.mark.thorough) for mapping in ("none", "id")] + ["name"]
)
def test_the_connector_reads_and_continues_what_executors_have_written(
    jvm: Jvm, spark: SparkSession, tmp_path: Path, mapping: str
) -> None:
    """Rows and row ids stay the same through deltalog's OPTIMIZE and REORG and the connector's operations in
    between.
    """
    table = f"delta.`{tmp_path}`"
    jvm.run(
        f"""CREATE TABLE {table} (id BIGINT, p STRING, t TIMESTAMP, s STRUCT<a: STRING, l: ARRAY<DECIMAL(20, 3)>>)
        USING delta PARTITIONED BY (p) TBLPROPERTIES (
        'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true',
        'delta.columnMapping.mode' = '{mapping}')"""
    )
    for first in (0, 300, 600):
        jvm.run(
            f"""INSERT INTO {table} SELECT id, IF(id % 3 = 0, NULL, IF(id % 3 = 1, 'a/b %', 'z')),
            timestamp_micros(id * 1000003), named_struct('a', concat('s', id), 'l', array(id * 7, NULL))
            FROM range({first}, {first + 300}, 1, 2)"""
        )
    jvm.run(f"DELETE FROM {table} WHERE id % 7 = 1")
    tracked = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table}"
    expected, ids = rows(jvm.query(f"SELECT * FROM {table}")), rows(jvm.query(tracked))
    spark.conf.set(MIN_SIZE, "0")
    try:
        [done] = spark.sql(f"OPTIMIZE deltalog.`{tmp_path}`").collect()
        assert (done.metrics.numFilesAdded, deltalog.DeltaTable(tmp_path).version()) == (3, 5)
        assert rows(jvm.query(f"SELECT * FROM {table}")) == expected
        assert rows(jvm.query(tracked)) == ids
        jvm.run(f"DELETE FROM {table} WHERE id % 11 = 3")
        jvm.run(f"UPDATE {table} SET s.a = 'new' WHERE id % 13 = 5")
        expected, ids = rows(jvm.query(f"SELECT * FROM {table}")), rows(jvm.query(tracked))
        spark.sql(f"REORG TABLE deltalog.`{tmp_path}` APPLY (PURGE)")
    finally:
        spark.conf.unset(MIN_SIZE)
    assert rows(jvm.query(f"SELECT * FROM {table}")) == expected
    assert rows(pa.table(deltalog.DeltaTable(tmp_path).to_arrow())) == expected
    assert rows(jvm.query(tracked)) == ids
    jvm.run(f"OPTIMIZE {table}")
    assert rows(jvm.query(f"SELECT * FROM {table}")) == expected
    assert rows(jvm.query(tracked)) == ids
