"""DELETE, UPDATE and MERGE statements have the same effects on Spark with deltalog as with the JVM connector."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.interop.conftest import Jvm
from tests.interop.statements import same
from tests.interop.test_statements import FILES, SOURCE_SQL, STATEMENTS, TABLES
from tests.python.statement_support import created


# Each statement runs on two of the tables, which follow each other in `TABLES`.
@pytest.mark.parametrize("second", [0, 1])
@pytest.mark.parametrize("number", range(len(STATEMENTS)))
def test_a_statement_does_what_the_connector_does(
    tmp_path: Path, jvm: Jvm, spark: SparkSession, number: int, second: int
) -> None:
    sql, _ = STATEMENTS[number]
    properties, partition_by = TABLES[(number + second) % len(TABLES)]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    before = created(ours, FILES, properties, partition_by).version()
    shutil.copytree(ours, theirs)
    spark.sql(sql.format(table=f"deltalog.`{ours}`", source=SOURCE_SQL))
    jvm.run(sql.format(table=f"delta.`{theirs}`", source=SOURCE_SQL))
    same(jvm, ours, theirs, before, sql)
