"""Spark reads and writes tables whose definition was changed (PROTOCOL, "Column Mapping", "Row Tracking", "CHECK
Constraints"; table feature `typeWidening`).
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, Field, write_deltalake
from deltalog.errors import InvalidArgumentError


def test_spark_writes_to_an_altered_table(spark: SparkSession, path: str) -> None:
    write_deltalake(path, pa.table({"id": pa.array([1], pa.int32()), "old": ["x"]}))
    table = DeltaTable(path)
    features = ("columnMapping.mode", "name"), ("enableTypeWidening", "true"), ("enableRowTracking", "true")
    table.alter.set_table_properties({f"delta.{name}": value for name, value in features})
    table.alter.widen_column("id", "long")
    table.alter.rename_column("old", "a name")
    table.alter.add_columns(Field("n", "double"), first=True)
    table.alter.add_constraint({"positive": "id > 0"})
    schema = "n double, id long, `a name` string"
    append = spark.createDataFrame([(1.5, 2**40, "y")], schema).write.format("deltalog").mode("append")
    append.save(path)
    expected = [(None, 1, "x"), (1.5, 2**40, "y")]
    read = spark.read.format("deltalog").load(path).orderBy("id")
    assert [tuple(row) for row in read.collect()] == expected
    found = pa.table(DeltaTable(path).to_arrow(row_ids=True)).sort_by("id").to_pylist()
    assert [tuple(row.values())[:4] for row in found] == [
        (*row, number) for number, row in enumerate(expected)
    ]
    refused = spark.createDataFrame([(1.5, -1, "y")], schema).write.format("deltalog").mode("append")
    with pytest.raises(InvalidArgumentError, match="'positive'"):
        refused.save(path)
    assert DeltaTable(path).count() == 2
