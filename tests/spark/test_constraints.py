"""Spark's own writer checks no rows, so tables that demand it are refused before it writes (PROTOCOL, "CHECK
Constraints").
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from deltalog.errors import UnsupportedFeatureError
from tests.crafted import CraftedTable, field


def test_a_table_with_a_constraint_is_refused_before_spark_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    crafted = CraftedTable(
        tmp_path / "t",
        [field("id", "integer")],
        writer_features=["checkConstraints"],
        configuration={"delta.constraints.positive": "id > 0"},
    )
    crafted.commit()
    rows = spark.range(3).selectExpr("CAST(id AS INT) AS id")
    for mode in ["append", "overwrite"]:
        with pytest.raises(UnsupportedFeatureError, match="positive"):
            rows.write.format("deltalog").mode(mode).save(str(tmp_path / "t"))
    assert DeltaTable(tmp_path / "t").version() == 0
    assert not list(tmp_path.rglob("*.parquet"))
