"""Spark's tasks Z-order and cluster tables while other writers commit. The rows stay the same, and filters can skip
files.
"""

import itertools
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from deltalog import CommitConflictError, DeltaTable, InvalidArgumentError, MissingFileError, write_deltalake
from deltalog.spark import tables
from deltalog.spark.jvm import Jvm
from deltalog.spark.sql import division, executors
from tests.spark.test_executors import (
    contents,
    delete,
    files,
    is_by_executors,
    last_commit,
    meanwhile,
    names,
    of_kind,
    rows,
)

VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKING = {"delta.enableRowTracking": "true"}


@pytest.fixture(autouse=True)
def by_executors(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(division.MIN_SIZE, "0")
    yield
    spark.conf.unset(division.MIN_SIZE)
    spark.conf.unset(executors.MAX_FILE_SIZE)


def points(count: int, seed: int = 0) -> pa.Table:
    """Returns rows with two independent columns."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    x = [chance.randrange(1_000_000) for _ in range(count)]
    y = [f"{chance.randrange(1_000_000):06}" for _ in range(count)]
    return pa.table(
        {"id": range(seed * count, (seed + 1) * count), "p": [i % 2 for i in range(count)], "x": x, "y": y}
    )


def create(
    path: str, configuration: dict[str, str], partition_by: list[str] | None = None, count: int = 4_000
) -> None:
    for seed in range(4):
        write_deltalake(
            path, points(count, seed), mode="append", partition_by=partition_by, configuration=configuration
        )


def overlap(path: str, column: str) -> float:
    """Returns the average share of files whose bounds contain a value of the column."""
    bounds = [
        (stats["minValues"][column], stats["maxValues"][column])
        for stats in (json.loads(add["stats"]) for add in of_kind(last_commit(path), "add"))
    ]
    values = [value for bound in bounds for value in bound]
    found = sum(low <= value <= high for low, high in bounds for value in values)
    return float(found / len(bounds) / len(values))


def target(path: str, count: int) -> int:
    """Returns the file size with which the table would have about this many files."""
    sizes = [Path(file).stat().st_size for file in files(path)]
    return sum(sizes) // count


@pytest.mark.parametrize(
    ("configuration", "partition_by"),
    [
        pytest.param({}, None, marks=pytest.mark.newest),
        pytest.param(VECTORS | TRACKING, ["p"], marks=pytest.mark.every_spark),
        pytest.param(VECTORS | {"delta.columnMapping.mode": "name"}, ["p"], marks=pytest.mark.newest),
    ],
)
def test_each_row_occurs_once_and_files_can_be_skipped(
    spark: SparkSession, path: str, configuration: dict[str, str], partition_by: list[str] | None
) -> None:
    create(path, configuration, partition_by)
    table = f"deltalog.`{path}`"
    if configuration:
        spark.sql(f"DELETE FROM {table} WHERE id % 7 = 3")
    tracked = "delta.enableRowTracking" in configuration
    columns = "*, _metadata.row_id, _metadata.row_commit_version" if tracked else "*"
    before = rows(spark, table, columns)
    other = path + " by the core"
    shutil.copytree(path, other)
    size = target(path, 16)
    spark.conf.set(executors.MAX_FILE_SIZE, str(size))
    [done] = spark.sql(f"OPTIMIZE {table} ZORDER BY (x, y)").collect()
    assert is_by_executors(path)
    assert rows(spark, table, columns) == before
    assert DeltaTable(path).verify().ok
    expected = DeltaTable(other).optimize.z_order(["x", "y"], target_size=size)
    for name in (
        "numFilesAdded",
        "numFilesRemoved",
        "numBins",
        "totalConsideredFiles",
        "partitionsOptimized",
    ):
        assert done.metrics[name] == expected[name], name
    assert done.metrics.zOrderStats.inputOtherFiles.num == expected["zOrderStats"]["inputOtherFiles"]["num"]
    added = of_kind(last_commit(path), "add")
    assert 14 <= len(added) <= 20
    counts = [json.loads(add["stats"])["numRecords"] for add in added]
    assert max(counts) < 1.5 * min(counts), counts
    if "delta.columnMapping.mode" not in configuration:
        for column in ("x", "y"):
            assert overlap(path, column) < 1.2 * overlap(other, column) < 0.7, column
    [info] = of_kind(last_commit(path), "commitInfo")
    assert json.loads(info["operationParameters"]["zOrderBy"]) == ["x", "y"]


@pytest.mark.newest
def test_values_of_any_type_and_fields_of_structs(spark: SparkSession, path: str) -> None:
    """Rows can be ordered by values of any type, and by fields of structs. The values include NULL, NaN, negative and
    large numbers, strings with the same beginning, and days before 1970.
    """
    table = f"deltalog.`{path}`"
    columns = {
        "l": "BIGINT",
        "i": "INT",
        "h": "SMALLINT",
        "b": "TINYINT",
        "f": "FLOAT",
        "d": "DOUBLE",
        "c": "DECIMAL(9, 2)",
        "e": "DECIMAL(38, 4)",
        "t": "TIMESTAMP",
        "n": "TIMESTAMP_NTZ",
        "a": "DATE",
        "s": "STRING",
    }
    spark.sql(
        f"CREATE TABLE {table} (k INT, {', '.join(f'{name} {kind}' for name, kind in columns.items())}, "
        f"z STRUCT<`a.b`: INT, x: STRUCT<y: STRING>>) USING deltalog"
    )
    # The values are made from the numbers from -600 to 599, each used once, so that all columns have the same order.
    select = """
        k, k AS l, k AS i, k AS h, CAST(k DIV 10 AS TINYINT) AS b,
        IF(k = 599, FLOAT('NaN'), FLOAT(k)) AS f, IF(k = 599, DOUBLE('NaN'), DOUBLE(k)) AS d,
        k / 100 AS c, CAST(concat(k, '00000000000000000000') AS DECIMAL(38, 4)) AS e,
        timestamp_seconds(k * 100000L) AS t, CAST(timestamp_seconds(k * 100000L) AS TIMESTAMP_NTZ) AS n,
        date_add(DATE '1970-01-01', k) AS a, concat(repeat('x', 25), lpad(k + 600, 4, '0')) AS s,
        named_struct('a.b', k, 'x', named_struct('y', lpad(k + 600, 4, '0'))) AS z
    """
    for number in range(3):
        spark.sql(
            f"INSERT INTO {table} SELECT {select} "
            f"FROM (SELECT CAST(id * 3 + {number} - 600 AS INT) AS k FROM range(400))"
        )
    spark.sql(f"INSERT INTO {table} (k) VALUES (-601), (-602)")
    before = rows(spark, table)
    spark.conf.set(executors.MAX_FILE_SIZE, str(target(path, 4)))
    ways = [*((name,) for name in columns), ("z.`a.b`",), ("z.x.y",), ("l", "z.x.y", "d")]
    for by in ways:
        spark.sql(f"OPTIMIZE {table} ZORDER BY ({', '.join(by)})")
        assert is_by_executors(path)
        assert rows(spark, table) == before, by
        if len(by) == 1 and by != ("b",):
            # Each file has a range of rows. NULL comes first, and NaN last.
            ranges = sorted(
                (min(row["k"] for row in file), max(row["k"] for row in file)) for file in contents(path)
            )
            assert len(ranges) >= 3
            for (_, high), (low, _) in itertools.pairwise(ranges):
                assert high < low, (by, ranges)


@pytest.mark.newest
def test_equal_rows_are_divided_into_files(spark: SparkSession, path: str) -> None:
    """Rows are divided into several files even if all have the same value in a column, or most do."""
    for number in range(4):
        data = {
            "id": range(number * 5_000, (number + 1) * 5_000),
            "one": [1] * 5_000,
            "none": pa.nulls(5_000, pa.int64()),
        }
        write_deltalake(path, pa.table(data), mode="append")
    table = f"deltalog.`{path}`"
    for columns in ("one", "one, none"):
        spark.conf.set(executors.MAX_FILE_SIZE, str(target(path, 5)))
        spark.sql(f"OPTIMIZE {table} ZORDER BY ({columns})")
        counts = [len(rows) for rows in contents(path)]
        assert len(counts) >= 5
        assert max(counts) < 1.3 * min(counts), counts
        assert sorted(row["id"] for file in contents(path) for row in file) == list(range(20_000))


@pytest.mark.newest
def test_a_clustered_table(spark: SparkSession, path: str) -> None:
    """In a clustered table, new files become a cube. Files of other cubes that have deleted rows are rewritten in
    their order. FULL clusters all files.
    """
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, p BIGINT, x BIGINT, y STRING) USING deltalog CLUSTER BY (x, y) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    for seed in range(3):
        write_deltalake(path, points(4_000, seed), mode="append")
    spark.conf.set(executors.MAX_FILE_SIZE, str(target(path, 12)))
    before = rows(spark, table)

    def cubes() -> set[str]:
        return {add["tags"]["ZCUBE_ID"] for add in of_kind(last_commit(path), "add") if add.get("tags")}

    [done] = spark.sql(f"OPTIMIZE {table}").collect()
    assert is_by_executors(path)
    assert rows(spark, table) == before
    assert done.metrics.clusteringStats.numOutputZCubes == 1
    assert len(cubes()) == 1
    assert all(add["clusteringProvider"] == "liquid" for add in of_kind(last_commit(path), "add"))
    assert overlap(path, "x") < 0.8
    assert spark.sql(f"OPTIMIZE {table}").collect()[0].metrics.numFilesAdded == 0
    # OPTIMIZE orders the rows of a small new file.
    # It also rewrites the cube's files that have deleted rows, but keeps the order of their rows.
    [cube] = cubes()
    spark.sql(f"DELETE FROM {table} WHERE x < 200000 AND id % 2 = 0")
    write_deltalake(path, points(100, 900), mode="append")
    before = rows(spark, table)
    kept = [[row for row in file if row["x"] >= 200_000 or row["id"] % 2] for file in contents(path)]
    spark.sql(f"OPTIMIZE {table}")
    assert is_by_executors(path)
    assert rows(spark, table) == before
    assert cubes() > {cube}
    assert not any(add.get("deletionVector") for add in of_kind(last_commit(path), "add"))
    # Rows of rewritten files are in their old order.
    assert [file for file in contents(path) if len(file) > 100] == sorted(
        (file for file in kept if len(file) > 100), key=str
    )
    spark.sql(f"ALTER TABLE {table} CLUSTER BY (y)")
    [done] = spark.sql(f"OPTIMIZE {table} FULL").collect()
    assert done.metrics.numFilesAdded > 1
    assert is_by_executors(path)
    assert rows(spark, table) == before
    assert len(cubes()) == 1
    assert DeltaTable(path).verify().ok


def without_statistics(path: str) -> None:
    """Removes the statistics from the log."""
    for file in Path(path, "_delta_log").glob("*.crc"):
        file.unlink()
    for file in Path(path, "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.get("add", {}).pop("stats", None)
        file.write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.newest
@pytest.mark.parametrize("has_statistics", [True, False])
@pytest.mark.parametrize("partitions", [1, 2])
def test_partition_columns_in_the_files(
    spark: SparkSession, path: str, partitions: int, has_statistics: bool
) -> None:
    """Protocol, "Iceberg Compatibility V2": partition columns are stored in files, after the other columns."""
    table = f"deltalog.`{path}`"
    columns = ["region", "day"][:partitions]
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, region STRING, day INT, v DOUBLE) USING deltalog "
        f"PARTITIONED BY ({', '.join(columns)}) TBLPROPERTIES "
        "('delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    for number in range(4):
        spark.sql(
            f"INSERT INTO {table} SELECT id, 'i', id % 3, id * 7 % 100 "
            f"FROM range({number * 60}, {number * 60 + 60}, 1, 1)"
        )
    if not has_statistics:
        without_statistics(path)
    before, schema = rows(spark, table), pq.ParquetFile(files(path)[0]).schema_arrow
    spark.conf.set(executors.MAX_FILE_SIZE, str(target(path, 6)))
    spark.sql(f"OPTIMIZE {table} ZORDER BY (v)")
    assert is_by_executors(path)
    assert rows(spark, table) == before
    assert len(files(path)) > 1
    assert {tuple(pq.ParquetFile(file).schema_arrow.names) for file in files(path)} == {tuple(schema.names)}


@pytest.mark.newest
@pytest.mark.parametrize("name", ["__deltalog_file", "__deltalog_row", "__deltalog_task", "__deltalog_place"])
def test_columns_with_our_names(spark: SparkSession, path: str, name: str) -> None:
    """Internal columns of the plan are identified by their positions, because columns of the table may have the same
    names.
    """
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id INT, v INT, w INT, {name} INT) USING deltalog PARTITIONED BY ({name})"
    )
    other = f"deltalog.`{path} unpartitioned`"
    spark.sql(f"CREATE TABLE {other} (id INT, {name} STRING, w INT) USING deltalog")
    for number in range(3):
        source = f"range({number * 10}, {number * 10 + 10})"
        spark.sql(f"INSERT INTO {table} SELECT id, id * 7 % 10, 0, id % 2 FROM {source}")
        spark.sql(f"INSERT INTO {other} SELECT id, id * 7 % 10, 0 FROM {source}")
    before = rows(spark, table), rows(spark, other)
    spark.sql(f"OPTIMIZE {table}")
    assert is_by_executors(path)
    spark.sql(f"OPTIMIZE {table} ZORDER BY (v)")
    assert is_by_executors(path)
    spark.sql(f"OPTIMIZE {other} ZORDER BY ({name})")
    assert is_by_executors(f"{path} unpartitioned")
    assert (rows(spark, table), rows(spark, other)) == before
    [ordered] = contents(f"{path} unpartitioned")
    assert [row[name] for row in ordered] == sorted(str(number * 7 % 10) for number in range(30))


@pytest.mark.newest
@pytest.mark.thorough
def test_many_partitions_and_rows_of_an_unknown_number(spark: SparkSession, path: str) -> None:
    """There are many partitions, and the number of rows is unknown. The driver keeps at most one boundary per sampled
    row. Without statistics, each task samples a limited number of rows.
    """
    table = f"deltalog.`{path}`"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, p BIGINT, x BIGINT) USING deltalog PARTITIONED BY (p)")
    for number in range(2):
        spark.sql(
            f"INSERT INTO {table} SELECT id, id % 300, id * 7919 % 100003 FROM range({number}, 30000, 2)"
        )
    spark.sql(f"OPTIMIZE {table} ZORDER BY (x)")
    assert is_by_executors(path)
    assert len(files(path)) == 300
    for file in contents(path):
        assert [row["x"] for row in file] == sorted(row["x"] for row in file)
    large = f"deltalog.`{path} large`"
    data = spark.range(0, 3_000_000, 1, 3).selectExpr("id", "id * 7919 % 100003 AS x")
    data.write.format("deltalog").save(f"{path} large")
    without_statistics(f"{path} large")
    spark.conf.set(executors.MAX_FILE_SIZE, str(target(f"{path} large", 5)))
    spark.sql(f"OPTIMIZE {large} ZORDER BY (x)")
    counts = [json.loads(add["stats"])["numRecords"] for add in of_kind(last_commit(f"{path} large"), "add")]
    assert sum(counts) == 3_000_000
    assert len(counts) >= 5
    assert max(counts) < 1.2 * min(counts), counts


@pytest.mark.parametrize("configuration", [VECTORS, VECTORS | TRACKING])
def test_concurrent_deletes_are_applied_to_the_new_files(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, configuration: dict[str, str]
) -> None:
    """Rows that other writers delete are found in the new files and deleted there. Tasks do not record where they
    write rows, so the rows are looked for.
    """
    create(path, configuration, ["p"], 500)
    table = f"deltalog.`{path}`"
    spark.sql(f"DELETE FROM {table} WHERE id % 9 = 4")
    version = DeltaTable(path).version()
    columns = "id, x, y" + (", _metadata.row_id" if TRACKING.keys() <= configuration.keys() else "")
    before = spark.sql(f"SELECT {columns} FROM {table}").collect()
    spark.conf.set(executors.MAX_FILE_SIZE, str(target(path, 8)))
    meanwhile(monkeypatch, lambda: delete(path, "id % 11 = 7 or id = 0"))
    [done] = spark.sql(f"OPTIMIZE {table} ZORDER BY (x, y)").collect()
    assert is_by_executors(path)
    gone = [row for row in before if row.id % 11 == 7 or row.id == 0]
    assert (done.metrics.numRowsCarriedOver, done.metrics.numBinsGivenUp) == (len(gone), 0)
    assert rows(spark, table, columns) == sorted(map(str, (row for row in before if row not in gone)))
    assert DeltaTable(path).verify().ok
    # A statement that began before the commit cannot find its rows, because their order has changed.
    with pytest.raises(CommitConflictError):
        delete(path, "id = 8", version)


@pytest.mark.newest
def test_rows_that_cannot_be_found_give_their_bins_up(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If an old file is missing when deleted rows are looked for, its bin is not committed. The other bins are."""
    create(path, VECTORS, ["p"], 500)
    table = f"deltalog.`{path}`"
    old = names(path)
    victim = Path(next(file for file in files(path) if "p=1" in file))

    def work() -> None:
        delete(path, "p = 1 and id = 7")
        victim.rename(victim.with_suffix(".away"))

    meanwhile(monkeypatch, work)
    caplog.set_level("WARNING", "deltalog.spark")
    [done] = spark.sql(f"OPTIMIZE {table} ZORDER BY (x, y)").collect()
    victim.with_suffix(".away").rename(victim)
    assert (done.metrics.numFilesAdded, done.metrics.numBinsGivenUp) == (1, 1)
    assert "could not be found" in caplog.text
    assert "OPTIMIZE did not rewrite 1 of its bins" in caplog.text
    found = sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())
    assert found == [number for number in range(2_000) if number != 7]
    assert len({name for name in names(path) - old if "deletion_vector" not in name}) == 1


@pytest.mark.newest
def test_equal_rows_that_other_writers_delete_are_distinguished(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows have the same place on the curve, and yet the right ones are deleted. In a clustered table, there are
    also files that keep their order.
    """
    table = f"deltalog.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, one BIGINT) USING deltalog CLUSTER BY (one) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    for number in range(3):
        spark.sql(
            f"INSERT INTO {table} SELECT id, 1 FROM range({number * 2000}, {number * 2000 + 2000}, 1, 1)"
        )
    spark.conf.set(executors.MAX_FILE_SIZE, str(target(path, 3)))
    meanwhile(monkeypatch, lambda: delete(path, "id % 3 = 1"))
    [done] = spark.sql(f"OPTIMIZE {table}").collect()
    assert is_by_executors(path)
    assert (done.metrics.numRowsCarriedOver, done.metrics.numBinsGivenUp) == (2000, 0)
    expected = [number for number in range(6000) if number % 3 != 1]
    assert sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect()) == expected


@pytest.mark.newest
def test_a_job_that_fails_leaves_nothing(spark: SparkSession, path: str) -> None:
    create(path, {}, None, 500)
    table = f"deltalog.`{path}`"
    victim = Path(files(path)[2])
    victim.rename(victim.with_suffix(".away"))
    version, before = DeltaTable(path).version(), names(path)
    with pytest.raises(MissingFileError, match="the file is not there"):
        spark.sql(f"OPTIMIZE {table} ZORDER BY (x)").collect()
    assert (DeltaTable(path).version(), names(path)) == (version, before)


@pytest.mark.newest
def test_verbs_procedures_and_what_is_refused(spark: SparkSession, path: str) -> None:
    create(path, {}, ["p"], 500)
    before = rows(spark, f"deltalog.`{path}`")
    tables.DeltaTable.forPath(spark, path).optimize().where("p = 1").executeZOrderBy("y", "x")
    assert is_by_executors(path)
    assert {add["partitionValues"]["p"] for add in of_kind(last_commit(path), "add")} == {"1"}
    spark.sql(f"CALL deltalog.optimize('{path}', z_order => array('x'), curve => 'zorder')")
    assert is_by_executors(path)
    assert rows(spark, f"deltalog.`{path}`") == before
    for columns, words in (("p", "partition column"), ("nothing", "nothing"), ("x, x", "twice")):
        with pytest.raises(InvalidArgumentError, match=words):
            spark.sql(f"OPTIMIZE deltalog.`{path}` ZORDER BY ({columns})")


@pytest.mark.newest
@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "true"},
        {
            "spark.sql.files.maxPartitionBytes": "4000",
            "spark.sql.files.openCostInBytes": "1",
            "spark.sql.files.maxRecordsPerFile": "3",
            "spark.sql.ansi.enabled": "false",
        },
        {"spark.sql.parquet.enableVectorizedReader": "false", "spark.sql.codegen.wholeStage": "false"},
    ],
)
def test_the_session_does_not_change_what_is_moved(
    spark: SparkSession, path: str, settings: dict[str, str]
) -> None:
    """Session settings do not change which rows are moved: how files are split and read, the number of tasks in a
    shuffle, and the maximum number of rows per file.
    """
    create(path, VECTORS | TRACKING, None, 2_000)
    table = f"deltalog.`{path}`"
    spark.sql(f"DELETE FROM {table} WHERE id % 10 = 1")
    columns = "*, _metadata.row_id"
    before = rows(spark, table, columns)
    size = target(path, 4)
    old = {name: spark.conf.get(name, None) for name in settings}
    for name, value in (settings | {executors.MAX_FILE_SIZE: str(size)}).items():
        spark.conf.set(name, value)
    try:
        [done] = spark.sql(f"OPTIMIZE {table} ZORDER BY (x, y)").collect()
    finally:
        for name, before_it in old.items():
            if before_it is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before_it)
    assert is_by_executors(path)
    assert rows(spark, table, columns) == before
    assert 4 <= done.metrics.numFilesAdded == len(files(path)) <= 6


@pytest.mark.newest
@pytest.mark.parametrize(("dimensions", "bits"), [(1, 6), (2, 5), (3, 4), (4, 3), (5, 2)])
def test_the_curve_is_that_of_the_core(spark: SparkSession, dimensions: int, bits: int) -> None:
    """Spark's tasks use the same curve as the core. On a Hilbert curve, each cell is next to the previous one, and
    each position belongs to one cell.
    """
    jvm = Jvm(spark.sparkContext._gateway)
    places = list(jvm.new("CurveGrid", True, dimensions, bits).all())
    # Positions begin with the highest bit, and are padded to whole bytes.
    shift = -dimensions * bits % 8
    cells = {int(place, 16) >> shift: number for number, place in enumerate(places)}
    assert sorted(cells) == list(range(1 << (dimensions * bits)))

    def cell(number: int) -> list[int]:
        return [number >> (at * bits) & ((1 << bits) - 1) for at in range(dimensions)]

    walk = [cell(cells[place]) for place in range(len(cells))]
    for last, this in itertools.pairwise(walk):
        assert sum(abs(a - b) for a, b in zip(last, this, strict=True)) == 1
