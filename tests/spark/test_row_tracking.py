"""The column `_metadata` has row ids and row commit versions (PROTOCOL, "Reader Requirements for Row Tracking")."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog
from benches.tables import vectors
from tests.crafted import CraftedTable, field


@pytest.mark.parametrize("batched", ["true", "false"])
def test_ids_and_versions_agree_with_python(spark: SparkSession, tmp_path: Path, batched: str) -> None:
    """Spark returns the same row ids and versions as Python. One file has the hidden columns for them, one lacks these
    columns, and one has deleted rows.
    """
    path = tmp_path / "a table"
    names = {"RowId": "_row-id", "RowCommitVersion": "_row-version"}
    configuration = {f"delta.rowTracking.materialized{what}ColumnName": name for what, name in names.items()}
    table = CraftedTable(
        path,
        [field("a", "long")],
        features=["deletionVectors"],
        writer_features=["rowTracking", "domainMetadata"],
        configuration={"delta.enableRowTracking": "true", **configuration},
    )
    hidden = {
        "_row-id": pa.array([100, None, 102], pa.int64()),
        "_row-version": pa.array([None, 0, 0], pa.int64()),
    }
    table.write("0.parquet", pa.table({"a": [0, 1, 2], **hidden}))
    table.write("1.parquet", pa.table({"a": [3, 4, 5]}))
    table.write("2.parquet", pa.table({"a": [6, 7, 8]}))
    (vector,) = vectors.write(path, [np.array([1])])
    for number in range(3):
        table.add(
            f"{number}.parquet",
            baseRowId=10 * number,
            defaultRowCommitVersion=number,
            stats={"numRecords": 3},
            vector=vector if number == 2 else None,
        )
    table.commit()
    wanted = pa.table(deltalog.DeltaTable(path).to_arrow(row_ids=True)).to_pylist()
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", batched)
    try:
        frame = spark.read.format("deltalog").load(str(path))
        found = (
            frame.selectExpr("a", "_metadata.row_id", "_metadata.row_commit_version", "_metadata.base_row_id")
            .orderBy("a")
            .collect()
        )
        assert [(row.a, row.row_id, row.row_commit_version) for row in found] == sorted(
            tuple(row.values()) for row in wanted
        )
        assert [row.base_row_id for row in found] == [0, 0, 0, 10, 10, 10, 20, 20]
        assert frame.where("_metadata.row_id = 102").select("a").collect() == [(2,)]
        assert frame.columns == ["a"]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
