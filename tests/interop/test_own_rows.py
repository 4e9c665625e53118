"""Two statements, one by deltalog and one by the JVM connector, read and change the same table at the same time.
Whichever commits second must take the other commit into account.

The first statement waits in a Python function, after it has chosen its version, until the second one is committed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltalog import CommitConflictError, DeltaTable
from tests.interop.conftest import Jvm
from tests.spark.overtaken import changed_at, created, last, overtaken, rows

LEVELS = ("WriteSerializable", "Serializable")
IS_CONFLICT = re.compile("DELTA_CONCURRENT_(APPEND|DELETE_READ|DELETE_DELETE)")

# Each statement replaces the content of one partition with the content of another partition.
SWAPS = {
    "REPLACE WHERE": "INSERT INTO {t} REPLACE WHERE part = '{to}' "
    "SELECT '{to}' AS part, {value} AS value FROM {t} WHERE part = '{of}'",
    "INSERT OVERWRITE": "INSERT OVERWRITE {t} "
    "SELECT '{to}' AS part, {value} AS value FROM {t} WHERE part = '{of}'",
    "PARTITION": "INSERT OVERWRITE {t} PARTITION (part = '{to}') "
    "SELECT {value} AS value FROM {t} WHERE part = '{of}'",
}
MISSING = (
    "INSERT INTO {t} SELECT s.part, {value} FROM VALUES ('p', 1L), ('r', 3L) s(part, value) "
    "LEFT ANTI JOIN {t} t ON t.value = s.value"
)
# These statements read rows of q, or all rows, and change only p.
STATEMENTS = {
    "INSERT": "INSERT INTO {t} SELECT 'p', hook(value) FROM {t} WHERE part = 'q'",
    "INSERT OVERWRITE": "INSERT OVERWRITE {t} SELECT 'p' AS part, hook(value) AS value FROM {t} WHERE part = 'q'",
    "REPLACE WHERE": "INSERT INTO {t} REPLACE WHERE part = 'p' "
    "SELECT 'p' AS part, hook(value) AS value FROM {t} WHERE part = 'q'",
    "UPDATE by a sum": "UPDATE {t} SET value = value - 3 "
    "WHERE part = 'p' AND (SELECT hook(sum(value)) FROM {t}) >= 3",
    "UPDATE to a sum": "UPDATE {t} SET value = (SELECT hook(sum(value)) FROM {t} WHERE part = 'q') WHERE part = 'p'",
    "DELETE with EXISTS": "DELETE FROM {t} WHERE part = 'p' "
    "AND EXISTS (SELECT 1 FROM {t} x WHERE x.part = 'q' AND hook(x.value) >= 0)",
    "MERGE that updates": "MERGE INTO {t} t USING (SELECT 'p' AS part, hook(sum(value)) AS s FROM {t}) s "
    "ON t.part = s.part WHEN MATCHED AND s.s >= 3 THEN UPDATE SET value = t.value - 3",
    "MERGE that inserts": "MERGE INTO {t} t USING (SELECT 'r' AS part, hook(sum(value)) AS s FROM {t}) s "
    "ON t.part = s.part WHEN NOT MATCHED AND s.s >= 3 THEN INSERT (part, value) VALUES ('r', -3)",
}
CHANGES = {
    "UPDATE": "UPDATE {t} SET value = value + 10 WHERE part = 'q'",
    "DELETE": "DELETE FROM {t} WHERE part = 'q'",
    "append": "INSERT INTO {t} VALUES ('q', 9L)",
}


def quick(names: Iterable[str], *chosen: str) -> list[Any]:
    """Returns the names as test parameters. Quick runs use only the chosen names."""
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.thorough) for name in names]


def theirs(path: str) -> str:
    return f"delta.`{path}`"


def ours(path: str) -> str:
    return f"deltalog.`{path}`"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture(autouse=True)
def dynamic(spark: SparkSession, jvm: Jvm) -> Iterator[None]:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    jvm.run("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    yield
    jvm.run("RESET spark.sql.sources.partitionOverwriteMode")
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


@pytest.mark.parametrize("statement", quick(SWAPS, "REPLACE WHERE"))
@pytest.mark.parametrize("level", quick(LEVELS, "Serializable"))
def test_partitions_are_not_swapped_when_the_connector_overtakes_us(
    jvm: Jvm, spark: SparkSession, path: str, statement: str, level: str
) -> None:
    """If the statements ran one after another, both partitions would be equal at the end."""
    created(path, level)
    second = SWAPS[statement].format(t=theirs(path), to="q", of="p", value="value")
    with overtaken(spark, path, lambda _: jvm.run(second)), pytest.raises(CommitConflictError):
        spark.sql(SWAPS[statement].format(t=ours(path), to="p", of="q", value="hook(value)")).collect()
    assert rows(path) == [("p", 1), ("q", 1)]


@pytest.mark.parametrize("statement", quick(SWAPS, "REPLACE WHERE"))
@pytest.mark.parametrize("level", quick(LEVELS, "Serializable"))
def test_partitions_are_not_swapped_when_we_overtake_the_connector(
    jvm: Jvm, spark: SparkSession, path: str, statement: str, level: str
) -> None:
    created(path, level)
    second = SWAPS[statement].format(t=ours(path), to="q", of="p", value="value")
    value = f"wait_at(value, '{path}')"
    with changed_at(path, lambda: spark.sql(second).collect()):
        error = jvm.attempt(SWAPS[statement].format(t=theirs(path), to="p", of="q", value=value))
    assert error is not None
    assert IS_CONFLICT.search(error), error
    assert rows(path) == [("p", 1), ("q", 1)]


@pytest.mark.parametrize("level", quick(LEVELS, "WriteSerializable"))
def test_rows_are_inserted_once_when_the_connector_overtakes_us(
    jvm: Jvm, spark: SparkSession, path: str, level: str
) -> None:
    created(path, level)
    second = MISSING.format(t=theirs(path), value="s.value")
    with overtaken(spark, path, lambda _: jvm.run(second)), pytest.raises(CommitConflictError):
        spark.sql(MISSING.format(t=ours(path), value="hook(s.value)")).collect()
    assert rows(path) == [("p", 1), ("q", 2), ("r", 3)]


@pytest.mark.parametrize("level", quick(LEVELS, "WriteSerializable"))
def test_rows_are_inserted_once_when_we_overtake_the_connector(
    jvm: Jvm, spark: SparkSession, path: str, level: str
) -> None:
    """deltalog's commit states that it is not a blind append. Otherwise it would not conflict under
    `WriteSerializable`.
    """
    created(path, level)
    second = MISSING.format(t=ours(path), value="s.value")
    value = f"wait_at(s.value, '{path}')"
    with changed_at(path, lambda: spark.sql(second).collect()):
        error = jvm.attempt(MISSING.format(t=theirs(path), value=value))
    assert error is not None
    assert IS_CONFLICT.search(error), error
    assert last(path)["isBlindAppend"] is False
    assert rows(path) == [("p", 1), ("q", 2), ("r", 3)]


@pytest.mark.parametrize("change", quick(CHANGES, "append"))
@pytest.mark.parametrize("statement", quick(STATEMENTS, "INSERT", "MERGE that inserts"))
@pytest.mark.parametrize("level", quick(LEVELS, "Serializable"))
def test_what_was_read_is_as_it_was_when_the_connector_has_not_changed_it(
    jvm: Jvm, spark: SparkSession, path: str, statement: str, change: str, level: str
) -> None:
    """Under `WriteSerializable`, a blind append of the connector is not a conflict, because it may be ordered after
    our statement.
    """
    created(path, level)
    text = STATEMENTS[statement].format(t=ours(path))
    with overtaken(spark, path, lambda _: jvm.run(CHANGES[change].format(t=theirs(path)))):
        if change == "append" and level == "WriteSerializable":
            spark.sql(text).collect()
            assert ("q", 9) in rows(path)
        else:
            with pytest.raises(CommitConflictError):
                spark.sql(text).collect()
            assert DeltaTable(path).version() == 1
