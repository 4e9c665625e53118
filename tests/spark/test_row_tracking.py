"""Row ids in `_metadata` (PROTOCOL, "Reader Requirements for Row Tracking")."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import deltalog
from benches.tables import vectors


@pytest.mark.parametrize("batched", ["true", "false"])
def test_ids_and_versions_are_those_of_python(spark: SparkSession, tmp_path: Path, batched: str) -> None:
    """A file with the hidden columns, one without, and one with deleted rows."""
    path = tmp_path / "a table"
    (path / "_delta_log").mkdir(parents=True)
    hidden = {
        "_row-id": pa.array([100, None, 102], pa.int64()),
        "_row-version": pa.array([None, 0, 0], pa.int64()),
    }
    pq.write_table(pa.table({"a": [0, 1, 2], **hidden}), path / "0.parquet")
    pq.write_table(pa.table({"a": [3, 4, 5]}), path / "1.parquet")
    pq.write_table(pa.table({"a": [6, 7, 8]}), path / "2.parquet")
    (vector,) = vectors.write(path, [np.array([1])])
    schema = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}
    names = {"RowId": "_row-id", "RowCommitVersion": "_row-version"}
    configuration = {f"delta.rowTracking.materialized{what}ColumnName": name for what, name in names.items()}
    features = {
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "rowTracking", "domainMetadata"],
    }
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet"},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {"delta.enableRowTracking": "true", **configuration},
            }
        },
    ]
    for number in range(3):
        file = path / f"{number}.parquet"
        add = {
            "path": file.name,
            "partitionValues": {},
            "size": file.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
        add |= {"baseRowId": 10 * number, "defaultRowCommitVersion": number, "stats": '{"numRecords":3}'}
        actions.append({"add": {**add, "deletionVector": vector} if number == 2 else add})
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
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
