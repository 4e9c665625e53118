"""Tables with data files outside of their directories, such as shallow clones.

(PROTOCOL, "Add File and Remove File".)
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import deltalake
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import deltalog
from deltalog._internal import Snapshot, read_fragment
from deltalog.spark.portable import DeltalogDataSource


@pytest.fixture
def clone(tmp_path: Path) -> tuple[str, str]:
    """Creates a table of two files, and a shallow clone with one more file. Both have a change data feed."""
    source, clone = tmp_path / "the source", tmp_path / "a clone"
    for first in (0, 10):
        data = pa.table({"n": pa.array([first, first + 1], pa.int64()), "p": ["é x", "y"]})
        deltalake.write_deltalake(
            source,
            data,
            mode="append",
            partition_by=["p"],
            configuration={"delta.enableChangeDataFeed": "true"},
        )
    actions: list[dict[str, Any]] = []
    for commit in sorted((source / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                start = "file://" if len(actions) % 2 else ""  # The root may be given as a URL or as a path.
                action["add"]["path"] = f"{start}{quote(str(source))}/{action['add']['path']}"
            if "commitInfo" not in action:
                actions.append(action)
    log = clone / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    deltalog.write_deltalake(clone, pa.table({"n": pa.array([20], pa.int64()), "p": ["y"]}), mode="append")
    return str(clone), str(source)


def read(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("deltalog").options(**options).load(path)


def test_outside_files_are_read_only_below_allowed_roots(spark: SparkSession, clone: tuple[str, str]) -> None:
    path, source = clone
    for options in ({}, {"allowedRoots": path + "2"}, {"allowedRoots": source + "/p=y"}):
        with pytest.raises(deltalog.UnsupportedFeatureError, match="outside the table"):
            read(spark, path, **options).collect()
    wanted = pa.table(deltalog.DeltaTable(path, allowed_roots=[source]).to_arrow()).sort_by("n").to_pylist()
    assert [row["n"] for row in wanted] == [0, 1, 10, 11, 20]
    for roots in (source, Path(source).as_uri().replace("%20", " "), json.dumps([path + "2", source])):
        frame = read(spark, path, allowedRoots=roots)
        assert frame.orderBy("n").toArrow().to_pylist() == wanted
        assert [row.n for row in frame.where("p = 'é x' AND n > 5").collect()] == [10]
    files = {file.name for root in clone for file in Path(root).glob("p=*/*.parquet")}
    shown = [row[0] for row in frame.select("_metadata.file_path").collect()]
    assert {Path(file).name for file in frame.inputFiles()} == {Path(file).name for file in shown} == files
    assert sum("the%20source" in file for file in shown) == 4
    with pytest.raises(deltalog.InvalidArgumentError, match="allowedRoots"):
        read(spark, path, allowedRoots="[1]")


def test_change_data_feeds_of_outside_files_are_read(spark: SparkSession, clone: tuple[str, str]) -> None:
    path, source = clone
    options = {"readChangeFeed": "true", "startingVersion": "0"}
    with pytest.raises(deltalog.UnsupportedFeatureError, match="outside the table"):
        read(spark, path, **options).collect()
    changes = read(spark, path, allowedRoots=source, **options)
    assert sorted(tuple(row) for row in changes.select("n", "_change_type", "_commit_version").collect()) == [
        (n, "insert", int(n == 20)) for n in (0, 1, 10, 11, 20)
    ]


def test_missing_outside_files_are_reported(spark: SparkSession, clone: tuple[str, str]) -> None:
    path, source = clone
    frame = read(spark, path, allowedRoots=source)
    plain = spark.read.parquet(source + "/p=y")
    plain.collect()
    for file in Path(source).glob("p=y/*.parquet"):
        file.unlink()
    with pytest.raises(deltalog.MissingFileError, match="the source/p=y/"):
        frame.collect()
    other = Path(source, "other")
    spark.range(1).write.parquet(str(other))
    gone = spark.read.parquet(str(other))
    for file in other.glob("*.parquet"):
        file.unlink()
    with pytest.raises((Py4JJavaError, PySparkException), match="FILE_NOT_EXIST") as caught:
        gone.collect()
    assert not isinstance(caught.value, deltalog.DeltaError)


def test_the_portable_source_reads_outside_files(clone: tuple[str, str]) -> None:
    path, source = clone
    reader = DeltalogDataSource({"path": path, "allowedRoots": source})
    pieces = reader.reader(reader.schema()).partitions()
    found = [
        n
        for piece in pieces
        for n in pa.RecordBatchReader.from_stream(read_fragment(piece.value)).read_all()["n"].to_pylist()
    ]
    assert sorted(found) == [0, 1, 10, 11, 20]
    (strict,) = Snapshot.open(Path(path).as_uri()).scan_partitions("", 1)
    with pytest.raises(deltalog.UnsupportedFeatureError, match="outside the table"):
        read_fragment(strict)
