"""The numbers that plots show, for tables whose logs are written by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, InvalidArgumentError, write_deltalake
from deltalog.plot.numbers.commits import Period, commits_of
from deltalog.plot.numbers.files import PartitionSizes, SizeRange, file_sizes
from deltalog.plot.numbers.growth import Size, growth_of
from deltalog.plot.numbers.overlap import overlap_of
from tests.python.place import commit_file
from tests.python.plotted import add, bounds, info, remove, table

LONG = {"x": "long"}


def test_sizes_of_files(tmp_path: Path) -> None:
    adds = [add(f"{at}", size) for at, size in enumerate((0, 1, 1000, 1023, 1024, 5000))]
    sizes = file_sizes(table(tmp_path / "t", [adds], LONG))
    assert (sizes.files, sizes.size_in_bytes, sizes.median_size, sizes.partitions) == (6, 8048, 1011.5, [])
    assert sizes.ranges[0] == SizeRange(1, 4, 2)
    assert sizes.ranges[-1] == SizeRange(4096, 16384, 1)
    assert sum(each.files for each in sizes.ranges) == 6
    nothing = file_sizes(table(tmp_path / "none", [[]], LONG))
    assert (nothing.files, nothing.median_size, nothing.ranges) == (0, None, [])


def test_sizes_of_partitions(tmp_path: Path) -> None:
    adds = [
        add(f"{at}", size, partitionValues={"m": month, "c": city})
        for at, (month, city, size) in enumerate(
            [("10", "Oslo", 5), ("9", "Rome", 7), ("9", "Rome", 9), ("9", "Oslo", 1), (None, None, 2)]
        )
    ]
    columns = {"m": "integer", "c": "string", "x": "long"}
    sizes = file_sizes(table(tmp_path / "t", [adds], columns, ["m", "c"]))
    assert sizes.partition_columns == ["m", "c"]
    assert sizes.partitions == [
        PartitionSizes((None, None), 1, 2, 2),
        PartitionSizes(("9", "Oslo"), 1, 1, 1),
        PartitionSizes(("9", "Rome"), 2, 16, 8),
        PartitionSizes(("10", "Oslo"), 1, 5, 5),
    ]


def test_overlap(tmp_path: Path) -> None:
    ranges = [(0, 9), (5, 14), (20, 20)]
    adds = [add(f"{at}", **bounds(*each)) for at, each in enumerate(ranges)]
    adds += [add("unknown"), add("empty", **bounds(None, None, rows=3, nulls=3))]
    overlap = overlap_of(table(tmp_path / "t", [adds], LONG), "x")
    assert (overlap.files, overlap.unknown, overlap.empty) == (5, 1, 1)
    # The bounds are 0, 9, 5, 14, 20 and 20. They are in 1, 2, 2, 1, 1 and 1 files, and perhaps in the file with unknown
    # bounds.
    assert overlap.mean == pytest.approx((1 + 2 + 2 + 1 + 1 + 1) / 6 + 1)
    assert overlap.most == 3
    assert [(part.low, part.files) for part in overlap.parts(4)] == [(0, 3), (5.25, 3), (10.5, 2), (15.75, 2)]
    assert [part.files for part in overlap.parts(200)] == [2] * 5 + [3] * 5 + [2] * 5 + [1] * 5 + [2]


VALUES: dict[str, list[Any]] = {
    "long": [-(2**62), -3, 0, 7, 2**62],
    "double": [-1.5, 0.0, 0.25, 1e300],
    "date": ["0001-01-01", "1969-12-31", "2024-02-29", "9999-12-31"],
    "timestamp": ["1969-12-31T23:59:59.999Z", "2024-02-29T12:00:00.001Z", "2030-01-01T00:00:00.000Z"],
    "string": ["", "Oslo", "a b", "é", "😀"],
    "decimal(10,2)": [-1.25, 0.0, 3.5],
    "boolean": [False, True],
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_filter_reads_as_many_files_as_the_plot_shows(tmp_path: Path, kind: str) -> None:
    """The overlap that a plot shows is compared with the number of files that a scan with a filter reads."""
    chance = random.Random(kind)  # noqa: S311 (the same files each time)
    files = []
    for at in range(30):
        low, high = sorted(chance.choices(VALUES[kind], k=2))
        shown = chance.choice([(low, high), (low, high), (low, high), (None, None)])
        files.append(add(f"{at}", **bounds(*shown)))
    found = table(tmp_path / "t", [files], {"x": kind})
    overlap = overlap_of(found, "x")
    most = 0
    for value in VALUES[kind]:
        is_text = isinstance(value, str) and kind == "string"
        literal = f"'{value}'" if is_text else f"CAST('{value}' AS {kind})"
        most = max(most, len(found.file_uris(f"x = {literal}")))
    assert (overlap.files, overlap.most) == (30, most)
    assert max(part.files for part in overlap.parts(16)) == most
    assert isinstance(overlap.label(overlap.low), str)


def test_columns_that_have_an_overlap(tmp_path: Path) -> None:
    struct = {"type": "struct", "fields": [{"name": "y.z", "type": "long", "nullable": True, "metadata": {}}]}
    columns = {
        "a.b": "long",
        "p": "date",
        "s": {**struct},
        "l": {"type": "array", "elementType": "long", "containsNull": True},
    }
    stats = {
        "numRecords": 1,
        "minValues": {"a.b": 1, "s": {"y.z": 3}},
        "maxValues": {"a.b": 2, "s": {"y.z": 4}},
    }
    adds = [add("1", partitionValues={"p": "2024-01-01"}, stats=stats), add("2", partitionValues={"p": None})]
    found = table(tmp_path / "t", [adds], columns, ["p"])
    assert (overlap_of(found, "a.b").most, overlap_of(found, "A.B").unknown) == (2, 1)
    partition = overlap_of(found, "p")
    assert (partition.most, partition.empty, partition.label(partition.low)) == (1, 1, "2024-01-01")
    for column, message in (
        ("nope", r"there is no column 'nope'.*pass one of a\.b, p, s, l"),
        ("p.x", "there is no column 'p.x'"),
        ("s", "is of type struct, which has no order"),
        ("l", "is of type array, which has no order"),
        (3, "column cannot be 3"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            overlap_of(found, column)  # type: ignore[arg-type]


def test_bounds_that_are_not_exact(tmp_path: Path) -> None:
    adds = [
        add("1", **bounds("NaN", "NaN")),
        add("2", **bounds("-Infinity", 3.0)),
        add("3", **bounds(1.0, "NaN")),
    ]
    overlap = overlap_of(table(tmp_path / "t", [adds], {"x": "double"}), "x")
    assert (overlap.unknown, overlap.most) == (1, 3)
    assert all(part.files >= 1 for part in overlap.parts(16))
    nothing = overlap_of(table(tmp_path / "none", [[]], LONG), "x")
    assert (nothing.files, nothing.mean, nothing.most, nothing.parts(9)) == (0, 0.0, 0, [])


def test_growth_is_that_of_each_version(tmp_path: Path) -> None:
    """The log has all kinds of commits. The numbers for each version are compared with the table at that version."""
    write_deltalake(
        tmp_path, pa.table({"x": range(100)}), configuration={"delta.enableDeletionVectors": "true"}
    )
    write_deltalake(tmp_path, pa.table({"x": range(100, 150)}), mode="append")
    found = DeltaTable(tmp_path)
    found.delete("x < 10")
    found.update({"x": "x + 1"}, predicate="x > 140")
    found.delete("x < 20")
    found.optimize.compact()
    found.alter.set_table_properties({"delta.appendOnly": "false"})
    found.restore(2)
    write_deltalake(tmp_path, pa.table({"x": [1]}), mode="overwrite")
    found = DeltaTable(tmp_path)
    found.create_checkpoint()
    sizes = growth_of(found)
    assert [each.version for each in sizes] == list(range(found.version() + 1))
    log = 0
    for each in sizes:
        then = DeltaTable(tmp_path, version=each.version)
        files = pa.table(then.files(columns=["size"]))["size"].to_pylist()
        log += commit_file(tmp_path, each.version).stat().st_size
        assert each == Size(each.version, then.count(), len(files), sum(files), log)
    last = growth_of(found, 3)
    assert [each[:4] for each in last] == [each[:4] for each in sizes[-3:]]
    assert [each.version for each in growth_of(DeltaTable(tmp_path, version=1))] == [0, 1]
    # Versions before the checkpoint can no longer be read.
    found.optimize.compact()
    commit_file(tmp_path, 3).unlink()
    assert growth_of(DeltaTable(tmp_path))[0].version == len(sizes) - 1


def test_growth_without_numbers_of_rows(tmp_path: Path) -> None:
    commits = [
        [add("a", 10, **bounds(1, 2, rows=4))],
        [add("b", 20)],
        [remove("b"), add("a", 10, **bounds(1, 2, rows=4))],
        [info(3, "WRITE", 0)],
    ]
    sizes = growth_of(table(tmp_path / "t", commits, LONG))
    assert [(each.rows, each.files, each.size_in_bytes) for each in sizes] == [
        (4, 1, 10),
        (None, 2, 30),
        (4, 1, 10),
        (4, 1, 10),
    ]


def test_commits(tmp_path: Path) -> None:
    hour = 3600
    commits = [
        [info(0, "CREATE TABLE", hour)],
        [info(1, "WRITE", hour + 60, readVersion=0)],
        [info(2, "WRITE", 3 * hour, readVersion=0)],
        [info(3, "MERGE", 3 * hour + 5, readVersion=1)],
        [{"commitInfo": {"timestamp": 3 * hour * 1000 + 6000}}],
    ]
    found = table(tmp_path / "t", commits, LONG)
    numbers = commits_of(found, most=3)
    assert (numbers.commits, numbers.overtaken, numbers.length) == (5, 2, hour * 1000)
    assert numbers.operations[0] == "WRITE"
    assert numbers.periods == [
        Period(hour * 1000, {"CREATE TABLE": 1, "WRITE": 1}, 0),
        Period(2 * hour * 1000, {}, 0),
        Period(3 * hour * 1000, {"WRITE": 1, "MERGE": 1, "unknown": 1}, 2),
    ]
    assert len(commits_of(found, most=1).periods) == 1
    assert commits_of(found, 1).commits == 1


def test_times_that_are_far_apart(tmp_path: Path) -> None:
    commits = [[info(0, "WRITE", -(10**11))], [info(1, "WRITE", 10**11)]]
    numbers = commits_of(table(tmp_path / "t", commits, LONG))
    assert numbers.commits == 2
    assert 2 <= len(numbers.periods) <= 40
