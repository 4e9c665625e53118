"""The meaning of the format name `delta` in an application with both the JVM connector and deltalog."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import deltalog
from tests.conftest import missing
from tests.interop.conftest import JARS, PYTHON

CODE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import deltalog.spark

place, jars, has_catalog = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", jars)
builder = builder.config("spark.sql.warehouse.dir", place + "/warehouse")
builder = builder.config("spark.databricks.delta.snapshotPartitions", "1")
if has_catalog:
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
spark = deltalog.spark.enable(builder.getOrCreate())
try:
    deltalog.spark.enable(spark, alias_delta=True)
    refused = None
except deltalog.errors.InvalidArgumentError as error:
    refused = str(error)
named = None
if has_catalog:
    spark.sql("CREATE TABLE theirs USING delta AS SELECT 1L AS id")
    spark.sql("INSERT INTO theirs VALUES (2)")
    spark.sql("DELETE FROM theirs WHERE id = 1")
    named = [row.id for row in spark.sql("SELECT * FROM theirs").collect()]
spark.range(1).write.format("delta").save(place + "/theirs")
spark.range(2).write.format("deltalog").save(place + "/ours")
print(json.dumps({
    "refused": refused,
    "named": named,
    "read": [spark.read.format(name).load(place + "/ours").count() for name in ("delta", "deltalog")],
}))
"""


def writers(table: Path) -> set[str]:
    """Returns the names of the engines that have committed to a table."""
    lines = [line for file in table.glob("_delta_log/*.json") for line in file.read_text().splitlines()]
    infos = [json.loads(line)["commitInfo"] for line in lines if "commitInfo" in line]
    return {"connector" if "Delta-Lake" in info["engineInfo"] else "deltalog" for info in infos}


@pytest.mark.parametrize("has_catalog", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_the_tables_of_the_connector_stay_its_own(tmp_path: Path, has_catalog: bool) -> None:
    jars = ",".join(sorted(str(jar) for jar in JARS.glob("*.jar")))
    if not (PYTHON.exists() and jars):
        missing("the JVM connector is not set up; `make test-python` does it")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "deltalog").symlink_to(Path(deltalog.__file__).parent)
    done = subprocess.run(
        [str(PYTHON), "-c", CODE, str(tmp_path), jars, str(has_catalog)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "modules")},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "the format delta is org.apache.spark.sql.delta" in said["refused"]
    assert said["read"] == [2, 2]
    assert writers(tmp_path / "theirs") == {"connector"}
    assert writers(tmp_path / "ours") == {"deltalog"}
    if has_catalog:
        assert said["named"] == [2]
        assert writers(tmp_path / "warehouse" / "theirs") == {"connector"}
