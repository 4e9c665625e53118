"""GENERATE on Spark, as a SQL statement, a procedure and a Python method, and manifests that are updated after Spark's
commits.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from deltalog import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark import tables

pytestmark = pytest.mark.newest


@pytest.fixture
def table(spark: SparkSession, path: str) -> Iterator[str]:
    spark.sql(f"CREATE TABLE g (a INT, p STRING) USING deltalog PARTITIONED BY (p) LOCATION '{path}'")
    spark.sql("INSERT INTO g VALUES (1, 'x'), (2, 'y')")
    yield "g"
    spark.sql("DROP TABLE g")


def manifests(path: str) -> dict[str, int]:
    """Returns the number of lines in the manifest of each partition."""
    root = Path(path) / "_symlink_format_manifest"
    return {file.parent.name: len(file.read_text().splitlines()) for file in root.rglob("manifest")}


def test_manifests_are_generated_and_kept(spark: SparkSession, path: str, table: str) -> None:
    assert spark.sql("GENERATE SYMLINK_FORMAT_MANIFEST FOR TABLE g").collect() == []
    assert manifests(path) == {"p=x": 1, "p=y": 1}
    [file] = (Path(path) / "_symlink_format_manifest" / "p=x" / "manifest").read_text().splitlines()
    assert file.startswith(f"file:{path}/p=x/")
    spark.sql("INSERT INTO g VALUES (3, 'x')")
    assert manifests(path) == {"p=x": 1, "p=y": 1}
    assert spark.sql("CALL deltalog.generate('g')").collect()[0].version == 2
    assert manifests(path) == {"p=x": 2, "p=y": 1}
    spark.sql(
        "ALTER TABLE g SET TBLPROPERTIES ('delta.compatibility.symlinkFormatManifest.enabled' = 'true')"
    )
    spark.sql("DELETE FROM g WHERE p = 'y'")
    spark.sql("INSERT INTO g VALUES (4, 'z')")
    assert manifests(path) == {"p=x": 2, "p=z": 1}
    tables.DeltaTable.forName(spark, "g").generate("symlink_format_manifest")
    assert manifests(path) == {"p=x": 2, "p=z": 1}


def test_what_is_refused(spark: SparkSession, path: str, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match="mode cannot be 'other'"):
        tables.DeltaTable.forName(spark, "g").generate("other")
    with pytest.raises(InvalidArgumentError, match="which is the only mode"):
        spark.sql("GENERATE other FOR TABLE g").collect()
    with pytest.raises(ParseException):
        spark.sql("GENERATE symlink_format_manifest TABLE g")
    spark.sql("ALTER TABLE g SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    with pytest.raises(UnsupportedFeatureError, match="column mapping mode 'name'"):
        spark.sql("GENERATE symlink_format_manifest FOR TABLE g").collect()
