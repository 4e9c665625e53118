"""Compares the Java reader of deletion vectors, which Spark's tasks use, with the Rust reader.

For any bytes, both readers find the same rows, or both refuse them. (PROTOCOL, "Deletion Vector Format", "Deletion
Vector File Storage Format".)
"""

import bisect
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import deltalog
from benches.tables import vectors
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.jars import PACKAGE
from tests.crafted import CraftedTable, field

ROWS = 140_000
MAGIC = 1681511377
NONE = (1 << 63) - 1
Rows = np.ndarray[Any, np.dtype[np.int64]]


def rows(*ranges: range | list[int]) -> Rows:
    return np.concatenate([np.array(each, np.int64) for each in ranges])


SHAPES: dict[str, Rows] = {
    "one": rows([7]),
    "array": rows(range(0, 9_000, 3)),
    "words": rows(range(1, 60_000, 2)),
    "containers": rows(range(65_530, 65_540), range(100_000, 110_000), range(131_071, 131_073), [139_999]),
}


def with_runs(found: Rows) -> bytes:
    """Returns a 32-bit bitmap that has only run containers, as writers produce that optimize their bitmaps."""
    heads, bodies = b"", []
    for key in np.unique(found >> 16):
        low = found[found >> 16 == key] & 0xFFFF
        starts = np.flatnonzero(np.diff(low, prepend=-2) != 1)
        ends = [*starts[1:], len(low)]
        runs = b"".join(
            struct.pack("<HH", low[start], end - start - 1) for start, end in zip(starts, ends, strict=True)
        )
        heads += struct.pack("<HH", key, len(low) - 1)
        bodies.append(struct.pack("<H", len(starts)) + runs)
    flags = ((1 << len(bodies)) - 1).to_bytes((len(bodies) + 7) // 8, "little")
    start = struct.pack("<I", 12347 | len(bodies) - 1 << 16) + flags + heads
    if len(bodies) >= 4:
        places = np.cumsum([len(start) + 4 * len(bodies), *map(len, bodies[:-1])])
        start += places.astype("<u4").tobytes()
    return start + b"".join(bodies)


def portable(found: Rows, runs: bool) -> bytes:
    return struct.pack("<IQI", MAGIC, 1, 0) + with_runs(found) if runs else vectors.bitmap(found)


def native(found: Rows, order: str) -> bytes:
    """Returns a deletion vector in the format of the protocol's inline example. One of its buckets is empty."""
    bitmaps = [vectors.bitmap(found)[16:], struct.pack("<II", 12346, 0)]
    return struct.pack(f"{order}II", MAGIC - 1, len(bitmaps)) + b"".join(
        struct.pack(f"{order}I", len(each)) + each for each in bitmaps
    )


class Readers:
    """The two readers: the Rust core, which reads a table of one file with an inline vector, and the Java class."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._jvm = Jvm(spark.sparkContext._gateway)
        self._path = path
        path.mkdir(parents=True)
        pq.write_table(
            pa.table({"n": pa.array(range(ROWS), pa.int64())}), path / "part.parquet", compression="none"
        )

    def rust(self, vector: bytes, cardinality: int) -> list[int] | None:
        descriptor = {
            "storageType": "i",
            "pathOrInlineDv": vectors.z85(vector + bytes(-len(vector) % 4)),
            "sizeInBytes": len(vector),
        }
        write_log(self._path, {**descriptor, "cardinality": cardinality})
        try:
            left = pa.table(deltalog.DeltaTable(str(self._path)).to_arrow())["n"].to_numpy()
        except (deltalog.CorruptDataError, deltalog.CorruptLogError):
            return None
        deleted: list[int] = np.setdiff1d(np.arange(ROWS), left).tolist()
        return deleted

    def java(self, vector: bytes, cardinality: int) -> Any:
        try:
            found = self._jvm.new("DeletionVector", bytearray(vector), cardinality)
        except Py4JJavaError as error:
            if f"{PACKAGE}.MalformedVector" not in str(error):
                raise
            return None
        return None if found.last() >= ROWS else found

    def agree(self, vector: bytes, cardinality: int, random: np.random.Generator) -> bool:
        """Checks that both readers agree on a vector, and returns whether it is valid."""
        expected, found = self.rust(vector, cardinality), self.java(vector, cardinality)
        assert (expected is None) == (found is None), (vector.hex(), cardinality)
        if expected is None:
            return False
        assert found.last() == (expected[-1] if expected else -1)
        for row in [
            0,
            *random.integers(0, ROWS, 8).tolist(),
            *(random.choice(expected, 8).tolist() if expected else []),
        ]:
            at = bisect.bisect_left(expected, row)
            assert getattr(found, "from")(row) == (expected[at] if at < len(expected) else NONE)
        return True


def write_log(path: Path, descriptor: dict[str, Any]) -> None:
    table = CraftedTable(path, [field("n", "long")], features=["deletionVectors"])
    table.add("part.parquet", vector=descriptor)
    table.commit()


@pytest.fixture
def readers(spark: SparkSession, tmp_path: Path) -> Readers:
    return Readers(spark, tmp_path / "t")


@pytest.mark.newest
@pytest.mark.parametrize("shape", SHAPES)
def test_java_and_rust_agree_on_every_form_and_damage(readers: Readers, shape: str) -> None:
    random = np.random.default_rng(len(shape))
    found = SHAPES[shape]
    forms = [portable(found, False), portable(found, True), native(found, "<"), native(found, ">")]
    good = 0
    for vector in forms:
        assert readers.agree(vector, len(found), random)
        for cardinality in (len(found) - 1, len(found) + 1, -1):
            assert not readers.agree(vector, cardinality, random)
        for length in (3, 11, len(vector) // 2, len(vector) - 1):
            assert not readers.agree(vector[:length], len(found), random)
        assert not readers.agree(vector + b"\0", len(found), random)
        # Changes are made mostly near the beginning, where most of the structure is.
        for at in [
            *random.integers(0, min(len(vector), 60), 12).tolist(),
            *random.integers(0, len(vector), 5).tolist(),
        ]:
            damaged = bytearray(vector)
            damaged[at] ^= 1 << random.integers(0, 8)
            good += readers.agree(bytes(damaged), len(found), random)
    if shape != "one":
        assert good > 0  # A vector with a changed byte may still be valid.


def test_row_numbers_beyond_32_bits_are_read(readers: Readers) -> None:
    low, high = vectors.bitmap(rows([3]))[16:], vectors.bitmap(rows([9]))[16:]

    def vector(*keys: int) -> bytes:
        buckets = zip(keys, (low, high), strict=True)
        return struct.pack("<IQ", MAGIC, 2) + b"".join(
            struct.pack("<I", key) + bucket for key, bucket in buckets
        )

    found = readers._jvm.new("DeletionVector", bytearray(vector(0, 5)), 2)
    after = getattr(found, "from")
    assert [after(0), after(4), after((5 << 32) + 9), after((5 << 32) + 10), after(0)] == [
        3,
        (5 << 32) + 9,
        (5 << 32) + 9,
        NONE,
        3,
    ]
    assert found.last() == (5 << 32) + 9
    for keys in ((5, 0), (2, 2), (0, 1 << 31)):
        assert readers.java(vector(*keys), 2) is None
        assert readers.rust(vector(*keys), 2) is None


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "a table"
    path.mkdir(parents=True)
    pq.write_table(pa.table({"n": pa.array(range(1000), pa.int64())}), path / "part.parquet")
    return path


def read(spark: SparkSession, path: Path) -> list[int]:
    """Reads the table with Spark, and checks that the Rust core has the same result or error."""
    try:
        found = spark.read.format("deltalog").load(str(path)).collect()
    except deltalog.DeltaError as error:
        # The class of Spark's error is derived from one of deltalog's and one of PySpark's classes.
        kind = getattr(type(error), "_plain", type(error))
        with pytest.raises(kind, match=re.escape(str(error.path))):
            deltalog.DeltaTable(str(path)).to_arrow()
        if error.table != path.as_uri():
            raise AssertionError(f"the table is {error.table}") from error
        raise
    numbers = [row.n for row in found]
    assert numbers == pa.table(deltalog.DeltaTable(str(path)).to_arrow())["n"].to_pylist()
    return numbers


def test_rows_beyond_the_end_of_the_file_are_refused(spark: SparkSession, table: Path) -> None:
    [last, beyond] = vectors.write(table, [rows([5, 999]), rows([5, 1000])])
    write_log(table, last)
    assert len(read(spark, table)) == 998
    write_log(table, beyond)
    with pytest.raises(
        deltalog.CorruptDataError, match="names row 1000 of a data file that has 1000 rows"
    ) as caught:
        read(spark, table)
    assert caught.value.path == "part.parquet"
    assert caught.value.hint


def test_damaged_vector_files_are_reported(spark: SparkSession, table: Path) -> None:
    """PROTOCOL, "Deletion Vector File Storage Format"."""
    [_, good] = vectors.write(table, [rows(range(0, 1000, 7)), rows([1, 500])])
    file = next(table.glob("*.bin"))
    content = file.read_bytes()
    write_log(table, good)
    assert len(read(spark, table)) == 998
    size, start = good["sizeInBytes"], good["offset"]
    for change in (
        {"offset": 1},
        {"offset": 10_000},
        {"sizeInBytes": size - 1},
        {"sizeInBytes": (1 << 31) - 1},
        {"cardinality": 1},
    ):
        write_log(table, {**good, **change})
        with pytest.raises(deltalog.CorruptDataError, match="deletion vector"):
            read(spark, table)
    write_log(table, good)
    other = bytearray(content[start + 4 : start + 4 + size])
    other[0] ^= 1
    no_magic = content[: start + 4] + other + struct.pack(">I", zlib.crc32(other))
    for damaged in (
        b"",
        content[: start + 2],
        content[:-1],
        content[:-1] + bytes([content[-1] ^ 1]),
        no_magic,
    ):
        file.write_bytes(damaged)
        with pytest.raises(deltalog.CorruptDataError, match="deletion vector"):
            read(spark, table)
    file.write_bytes(b"\x02" + content[1:])
    with pytest.raises(deltalog.UnsupportedFeatureError, match="version 2"):
        read(spark, table)
    file.unlink()
    with pytest.raises(deltalog.MissingFileError, match="deletion vector"):
        read(spark, table)


@settings(max_examples=60, deadline=None)
@given(
    before=st.sets(st.integers(0, 200_000), max_size=5),
    added=st.lists(
        st.one_of(st.integers(0, 200_000), st.integers(65_500, 65_600), st.just(2**32 - 1)), max_size=60
    ),
    sort=st.booleans(),
)
def test_rows_are_collected_in_any_order(
    spark: SparkSession, before: set[int], added: list[int], sort: bool
) -> None:
    jvm = Jvm(spark.sparkContext._gateway)
    classes: Any = spark.sparkContext._jvm
    bitmap = classes.org.roaringbitmap.RoaringBitmap()
    for row in before:
        bitmap.add(_signed(row))
    rows = jvm.new("BlockOfRows", bitmap)
    known = set(before)
    for row in sorted(added) if sort else added:
        assert rows.contains(_signed(row)) == (row in known)
        assert rows.add(_signed(row)) == (row not in known)
        known.add(row)
        assert rows.contains(_signed(row))
    rows.settle()
    assert [row & 0xFFFFFFFF for row in bitmap.toArray()] == sorted(known)


def _signed(row: int) -> int:
    """Converts 32 bits to a Java int."""
    return row - (1 << 32) if row >= 1 << 31 else row
