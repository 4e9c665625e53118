"""Spark and the core treat `char(n)` and `varchar(n)` inside of structs, arrays and maps alike."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from tests import lengths
from tests.crafted import CraftedTable


def test_spark_stores_the_same(spark: SparkSession, tmp_path: Path) -> None:
    # A table without the lengths hands the rows to Spark.
    plain = [{**column, "metadata": {}} for column in lengths.FIELDS]
    source = CraftedTable(tmp_path / "source", plain).commit()
    target = CraftedTable(tmp_path / "target", lengths.FIELDS).commit()
    write_deltalake(source, lengths.GIVEN, mode="append")
    data = spark.read.format("deltalog").load(str(source))
    data.write.format("deltalog").mode("append").save(str(target))
    assert DeltaTable(target).to_pyarrow_table().sort_by("id").to_pylist() == lengths.STORED.to_pylist()
    write_deltalake(source, lengths.REFUSED[3][0], mode="overwrite")
    with pytest.raises(Exception, match=r"(?i)exceed"):
        spark.read.format("deltalog").load(str(source)).write.format("deltalog").mode("append").save(
            str(target)
        )
    assert DeltaTable(target).version() == 1
