"""Files of untrusted writers could make Spark's own Parquet code follow a link, block, or crash. deltalog refuses them
before they reach this code.

The rule is the same as in the core (`tests/python/test_links.py`): the table's root may be a link, but nothing inside
of it may be one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import CorruptDataError, DeltaTable, UnsupportedFeatureError, write_deltalake
from deltalog.spark.jvm import Jvm
from tests.hostile.files import varint
from tests.python.test_links import PROTOCOL, add, data, log, metadata

pytestmark = pytest.mark.newest
LINK = "a symbolic link within a table is not followed"


def count(spark: SparkSession, path: Path) -> int:
    return len(spark.read.format("deltalog").load(str(path)).collect())


def names(directory: Path) -> list[str]:
    return sorted(str(file.relative_to(directory)) for file in directory.rglob("*"))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Creates a directory outside of the table. In the tests, it represents a directory of another user."""
    data(tmp_path / "outside" / "file.parquet")
    return tmp_path / "outside"


def test_a_file_that_is_a_link_is_not_read(spark: SparkSession, tmp_path: Path, outside: Path) -> None:
    target = outside / "file.parquet"
    table = tmp_path / "t"
    log(table, [PROTOCOL, metadata(), add("link.parquet", target)], [add("directory/file.parquet", target)])
    (table / "link.parquet").symlink_to(target)
    (table / "directory").symlink_to(outside)
    for condition in ("true", "n >= 0 AND p IS NULL"):
        with pytest.raises(UnsupportedFeatureError, match=LINK) as refused:
            spark.sql(f"SELECT n FROM deltalog.`{table}` WHERE {condition}").collect()
        assert "move its target into the table" in str(refused.value)
    with pytest.raises(UnsupportedFeatureError, match=LINK):
        spark.sql(f"DELETE FROM deltalog.`{table}` WHERE n % 2 = 0")
    with pytest.raises(UnsupportedFeatureError, match=LINK):
        spark.sql(f"CREATE TABLE deltalog.`{tmp_path / 'copy'}` DEEP CLONE deltalog.`{table}`")
    assert DeltaTable(table).version() == 1


def test_the_root_may_be_a_link(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "real", pa.table({"id": [1, 2]}))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert count(spark, tmp_path / "link") == 2
    spark.sql(f"INSERT INTO deltalog.`{tmp_path / 'link'}` VALUES (3)")
    assert count(spark, tmp_path / "real") == 3


def test_a_pipe_is_not_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    file = data(tmp_path / "outside.parquet")
    log(tmp_path / "t", [PROTOCOL, metadata(), add("pipe.parquet", file)])
    os.mkfifo(tmp_path / "t" / "pipe.parquet")
    with pytest.raises(UnsupportedFeatureError, match="not a regular file but a pipe"):
        count(spark, tmp_path / "t")


def test_a_vector_behind_a_link_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": range(10)}), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(table).delete("id = 3")
    (vector,) = table.glob("*.bin")
    vector.rename(tmp_path / "vector")
    vector.symlink_to(tmp_path / "vector")
    with pytest.raises(UnsupportedFeatureError, match=LINK):
        count(spark, table)


def test_a_footer_that_is_nested_deeply_ends_no_process(spark: SparkSession, tmp_path: Path) -> None:
    """A deeply nested footer is refused. Otherwise a `StackOverflowError` would end an executor, or in local mode the
    driver.
    """
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    # In Thrift's compact protocol: the first field is a struct whose first field is a struct, and so on.
    footer = b"\x1c" * 100_000
    file.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    for statement in ("SELECT * FROM {t}", "SELECT max(id) FROM {t}", "DELETE FROM {t} WHERE id % 2 = 1"):
        with pytest.raises(CorruptDataError, match="nested too deeply") as damaged:
            spark.sql(statement.replace("{t}", f"deltalog.`{tmp_path / 't'}`")).collect()
        assert file.name in str(damaged.value)
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("count", [2**31 - 1, 10**9])
def test_a_footer_that_claims_a_long_list_ends_no_process(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    """A footer that claims a very long list is refused. Parquet would allocate memory for all its entries before it
    reads them, and an `OutOfMemoryError` would end an executor.
    """
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    # In Thrift's compact protocol: the version, and then the schema, which is a list that claims very many structs.
    footer = b"\x15\x02\x19\xfc" + varint(count) + b"\0" * 40
    file.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    for statement in ("SELECT * FROM {t}", "DELETE FROM {t} WHERE id % 2 = 1"):
        with pytest.raises(
            CorruptDataError, match="claims more values or entries than the memory holds"
        ) as damaged:
            spark.sql(statement.replace("{t}", f"deltalog.`{tmp_path / 't'}`")).collect()
        assert file.name in str(damaged.value)
    assert spark.range(3).count() == 3


def test_links_are_found_below_the_root_of_the_file_system(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    protocol = Jvm(spark.sparkContext._gateway).new("TableCommitProtocol", "file:/", False, False)
    with pytest.raises(UnsupportedFeatureError, match=LINK):
        protocol.opened(f"file:{tmp_path}/link/file.parquet")


def test_nothing_is_written_through_a_link(spark: SparkSession, tmp_path: Path, outside: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"])
    (table / "p=b").symlink_to(outside)
    before = names(outside)
    with pytest.raises(UnsupportedFeatureError, match=LINK):
        spark.sql(f"INSERT INTO deltalog.`{table}` VALUES (2, 'b'), (3, 'c')")
    assert names(outside) == before
    assert DeltaTable(table).version() == 0
    spark.sql(f"INSERT INTO deltalog.`{table}` VALUES (3, 'c')")
    assert count(spark, table) == 2


def test_nothing_is_copied_through_a_link(spark: SparkSession, tmp_path: Path, outside: Path) -> None:
    """The tasks of a deep clone do not write through links, which another user may have put into the directory of the
    clone.
    """
    source = tmp_path / "t"
    write_deltalake(source, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "p=b").symlink_to(outside)
    before = names(outside)
    spark.conf.set("spark.deltalog.minSizeForExecutors", "0")
    try:
        with pytest.raises(UnsupportedFeatureError, match=LINK):
            spark.sql(f"CREATE TABLE deltalog.`{tmp_path / 'copy'}` DEEP CLONE deltalog.`{source}`")
    finally:
        spark.conf.unset("spark.deltalog.minSizeForExecutors")
    assert names(outside) == before
