"""OPTIMIZE in Spark clusters the rows of clustered tables. Protocol: "Clustered Table"."""

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from deltalog.spark import tables

pytestmark = pytest.mark.newest


def test_new_files_are_clustered(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE TABLE c (id BIGINT, a INT) USING deltalog CLUSTER BY (a) LOCATION '{path}'")
    try:
        for first in (0, 100):
            spark.sql(f"INSERT INTO c SELECT id, id * 37 % 101 FROM range({first}, {first + 100}, 1, 1)")
        before = spark.table("c").orderBy("id").collect()
        planned = spark.sql("CALL deltalog.optimize('c', dry_run => true)").collect()[0].metrics
        [done] = spark.sql("OPTIMIZE c").collect()
        stats = done.metrics.clusteringStats
        assert planned.clusteringStats == stats
        assert (stats.inputNumZCubes, stats.inputOtherFiles.numFiles, stats.numOutputZCubes) == (0, 2, 1)
        assert (done.metrics.numFilesAdded, done.metrics.zOrderStats) == (1, None)
        assert spark.table("c").orderBy("id").collect() == before
        again = tables.DeltaTable.forName(spark, "c").optimize().executeCompaction().collect()[0].metrics
        assert (again.numFilesAdded, again.clusteringStats.inputNumZCubes) == (0, 1)
        spark.sql("ALTER TABLE c CLUSTER BY (id)")
        assert spark.sql("OPTIMIZE c").collect()[0].metrics.numFilesAdded == 0
        plan = spark.sql("EXPLAIN OPTIMIZE c FULL").collect()[0].plan
        assert "optimize(c, null, false, null, null, true)" in plan
        assert spark.sql("optimize c full;").collect()[0].metrics.numFilesRemoved == 1
        verb = tables.DeltaTable.forName(spark, "c").optimize()
        assert verb.executeCompaction(full=True).collect()[0].metrics.clusteringStats.inputNumZCubes == 1
        assert spark.sql("CALL deltalog.optimize('c', full => true)").collect()[0].metrics.numFilesAdded == 0
        [newest] = spark.sql("DESCRIBE HISTORY c LIMIT 1").collect()
        assert newest.operationParameters["clusterBy"] == '["id"]'
        assert newest.operationParameters["isFull"] == "true"
        [detail] = spark.sql("DESCRIBE DETAIL c").collect()
        assert (detail.clusteringColumns, detail.numFiles) == (["id"], 1)
        spark.sql("ALTER TABLE c CLUSTER BY NONE")
        spark.sql("INSERT INTO c VALUES (200, 1)")
        metrics = spark.sql("OPTIMIZE c").collect()[0].metrics
        assert (metrics.numFilesRemoved, metrics.clusteringStats) == (2, None)
        assert spark.table("c").count() == 201
        assert DeltaTable(path).version() == 8
    finally:
        spark.sql("DROP TABLE c")
