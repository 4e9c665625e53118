"""MERGE gives the results that `tests/merge_cases.py` expects, both with deletion vectors and by rewriting files."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from tests.merge_cases import CASES, Case, content, statement

# All cases run with deletion vectors. These cases also run without them, so that files are rewritten.
REWRITING = (
    "update and insert",
    "delete and insert",
    "all clauses",
    "several: update of none",
    "several: delete, and by source",
    "NULL matches by <=>",
    "an empty target, by source",
    "the target as source",
    "a field",
)


class Targets:
    """Provides tables with the rows of the cases, and creates each table once."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark, self._directory = spark, directory
        self._created: dict[tuple[str, str, str], Path] = {}

    def copy(self, case: Case, vectors: str, path: str) -> str:
        key = (case.columns, case.rows, vectors)
        if key not in self._created:
            made = self._directory / str(len(self._created))
            table = f"deltalog.`{made}`"
            properties = f"'delta.enableDeletionVectors' = '{vectors}'"
            self._spark.sql(
                f"CREATE TABLE {table} ({case.columns}) USING deltalog TBLPROPERTIES ({properties})"
            )
            if case.rows:
                self._spark.sql(f"INSERT INTO {table} VALUES {case.rows}")
            self._created[key] = made
        shutil.copytree(self._created[key], path)
        return f"deltalog.`{path}`"


@pytest.fixture(scope="module")
def targets(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Targets:
    return Targets(spark, tmp_path_factory.mktemp("targets"))


@pytest.mark.parametrize(
    ("name", "vectors"), [(name, "true") for name in CASES] + [(name, "false") for name in REWRITING]
)
def test_merge(spark: SparkSession, path: str, targets: Targets, name: str, vectors: str) -> None:
    case = CASES[name]
    table = targets.copy(case, vectors, path)
    version = DeltaTable(path).version()
    if isinstance(case.expected, str):
        with pytest.raises(Exception, match=case.expected):
            spark.sql(statement(case, table))
        assert DeltaTable(path).version() == version
        return
    spark.sql(statement(case, table))
    found = [tuple(row) for row in spark.sql(content(case, table)).collect()]
    assert sorted(found, key=str) == sorted(case.expected, key=str)


def test_the_source_may_have_an_order_that_is_not_deterministic(
    spark: SparkSession, path: str, targets: Targets
) -> None:
    """The source may be ordered by a non-deterministic expression. Spark prepares such expressions in the last steps
    of its analysis, which deltalog's MERGE does not reach.
    """
    table = targets.copy(CASES["update"], "true", path)
    source = "(SELECT * FROM VALUES (1L, 'x', 100), (9L, 'z', 900) AS v(id, s, n) ORDER BY rand())"
    spark.sql(f"MERGE INTO {table} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    found = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert {"id": 1, "s": "x", "n": 100} in found
    assert len(found) == 4
