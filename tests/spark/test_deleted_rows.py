"""Spark's native scan leaves out deleted rows (PROTOCOL, "Reader Requirements for Deletion Vectors").

Which rows remain depends only on the file and its deletion vector.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import deltalog
from benches.tables import vectors
from deltalog.spark.jvm import Jvm
from tests.crafted import CraftedTable, field

ROWS = 70_000
SCHEMA = [
    ("n", "long"),
    ("text", "string"),
    (
        "pair",
        {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]},
    ),
    ("list", {"type": "array", "elementType": "long", "containsNull": True}),
    ("map", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}),
]


def data(first: int) -> pa.Table:
    numbers = range(first, first + ROWS)
    columns: dict[str, Any] = {
        "n": pa.array(numbers, pa.int64()),
        "text": [None if n % 7 == 0 else f"row {n}" for n in numbers],
        "pair": pa.array([None if n % 5 == 0 else {"x": n} for n in numbers], pa.struct([("x", pa.int32())])),
        "list": pa.array([[n, None] if n % 3 else None for n in numbers], pa.list_(pa.int64())),
        "map": pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
    }
    return pa.table(columns)


def deleted_rows() -> list[Any]:
    """Returns the deleted rows of each file.

    The files have, in this order, the following deleted rows: a random tenth of the rows, a dense range in the middle
    that spans containers of the bitmap, the first and the last row, no rows, and all rows.
    """
    random = np.random.default_rng(5)
    return [
        np.flatnonzero(random.random(ROWS) < 0.1),
        np.arange(20_000, 68_000),
        np.array([0, ROWS - 1]),
        None,
        np.arange(ROWS),
    ]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[int]]:
    """Creates a table of five files with many row groups. Returns its path, and the numbers that are not deleted."""
    path = tmp_path_factory.mktemp("vectors") / "a table"
    crafted = CraftedTable(path, [field(name, kind) for name, kind in SCHEMA], features=["deletionVectors"])
    deleted = deleted_rows()
    descriptors = iter(vectors.write(path, [rows for rows in deleted if rows is not None]))
    left: list[int] = []
    for number, rows in enumerate(deleted):
        first = number * ROWS
        file = crafted.write(
            f"part-{number}.parquet",
            data(first),
            row_group_size=6_000 + number,
            data_page_size=4096,
            write_page_index=number % 2 == 1,
        )
        bounds = {"minValues": {"n": first}, "maxValues": {"n": first + ROWS - 1}}
        crafted.add(
            file.name,
            stats={"numRecords": ROWS, "tightBounds": False, **bounds},
            vector=None if rows is None else next(descriptors),
        )
        gone = set() if rows is None else set(rows.tolist())
        left += [first + row for row in range(ROWS) if row not in gone]
    crafted.commit()
    return str(path), left


@pytest.mark.parametrize(
    ("split", "batched"),
    [
        ("128MB", "true"),
        ("150KB", "false"),
        pytest.param("128MB", "false", marks=pytest.mark.thorough),
        pytest.param("150KB", "true", marks=pytest.mark.thorough),
    ],
)
def test_rows_do_not_depend_on_splits_row_groups_or_batches(
    spark: SparkSession, table: tuple[str, list[int]], batched: str, split: str
) -> None:
    path, left = table
    settings = {
        "spark.sql.parquet.enableVectorizedReader": batched,
        "spark.sql.files.maxPartitionBytes": split,
        "spark.sql.parquet.columnarReaderBatchSize": "1000",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        frame = spark.read.format("deltalog").load(path)
        found = frame.select("n", sf.col("_metadata.row_index").alias("row")).toArrow()
        assert sorted(found["n"].to_pylist()) == left
        assert all(
            n % ROWS == row for n, row in zip(found["n"].to_pylist(), found["row"].to_pylist(), strict=True)
        )
        # For these conditions, row groups and pages are skipped by their statistics.
        for condition, wanted in (
            ("n BETWEEN 88500 AND 91999", [n for n in left if 88500 <= n <= 91999]),
            (
                "n IN (39999, 89999, 90000, 138000, 210000)",
                [n for n in left if n in (39999, 89999, 90000, 138000, 210000)],
            ),
        ):
            assert sorted(row.n for row in frame.where(condition).select("n").collect()) == wanted
        whole = frame.where("n % 1000 = 1").orderBy("n").toArrow()
        every = [data(file * ROWS) for file in range(5)]
        kept = pa.concat_tables(every).take([n for n in left if n % 1000 == 1])
        assert whole.cast(kept.schema).equals(kept)
        assert frame.count() == len(left)
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_the_plan_looks_like_that_of_plain_files(
    spark: SparkSession, table: tuple[str, list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    spark.read.format("deltalog").load(table[0]).where("n > 5").select("n").explain()
    plan = capsys.readouterr().out
    assert "FileScan parquet" in plan
    assert "ReadSchema: struct<n:bigint>" in plan
    assert "PushedFilters: [IsNotNull(n), GreaterThan(n,5)]" in plan
    assert "row_index" not in plan


def test_files_without_vectors_are_read_by_sparks_own_reader(
    spark: SparkSession, table: tuple[str, list[int]]
) -> None:
    frame = spark.read.format("deltalog").load(table[0])
    for condition, reader in (
        (f"n >= {3 * ROWS} AND n < {4 * ROWS}", "GuardedFormat"),
        (f"n >= {3 * ROWS} AND n <= {4 * ROWS}", "SnapshotFormat"),
        ("n >= 0", "SnapshotFormat"),
    ):
        some = frame.where(condition).select("n")
        scan: Any = some._jdf.queryExecution().sparkPlan().collectLeaves().head()
        assert scan.relation().fileFormat().getClass().getSimpleName() == reader
        wanted = [n for n in table[1] if eval(condition.replace("AND", "and"), {"n": n})]  # noqa: S307
        assert sorted(some.toArrow()["n"].to_pylist()) == wanted


def test_spark_has_the_fields_for_readers(spark: SparkSession) -> None:
    """Spark's reader classes have the private fields that deltalog uses. Without some of them, a scan would be correct
    but slower, so no other test would fail.
    """
    jvm = Jvm(spark.sparkContext._gateway)
    fields = {"RowNumbers": ["GENERATOR"], "ParquetReaders": ["ROW_GROUPS", "RECORDS", "INTERNAL"]}
    for kind, names in fields.items():
        for name in names:
            field = jvm.class_of(kind).getDeclaredField(name)
            field.setAccessible(True)
            assert field.get(None) is not None, name


def test_missing_and_damaged_vectors_are_reported(
    spark: SparkSession, table: tuple[str, list[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(table[0], copy)
    file = next(copy.glob("deletion_vector_*.bin"))
    content = bytearray(file.read_bytes())
    content[60] ^= 1
    file.write_bytes(content)
    with pytest.raises(deltalog.CorruptDataError, match="checksum"):
        spark.read.format("deltalog").load(str(copy)).collect()
    file.unlink()
    frame = spark.read.format("deltalog").load(str(copy))
    frame.explain()
    assert re.search(r"\[v0, (\d+) of \1 files, file:/", capsys.readouterr().out), (
        "planning does not read vectors"
    )
    with pytest.raises(deltalog.MissingFileError, match="deletion vector"):
        frame.collect()


def test_the_portable_source_reads_the_same_rows(table: tuple[str, list[int]]) -> None:
    """The portable source reads the same rows. Each part of the scan is read separately, as workers do."""
    from deltalog._internal import Snapshot, read_fragment

    pieces = Snapshot.open(Path(table[0]).as_uri()).scan_partitions("", 3)
    found = [
        n
        for piece in pieces
        for n in pa.RecordBatchReader.from_stream(read_fragment(piece)).read_all()["n"].to_pylist()
    ]
    assert sorted(found) == table[1]
