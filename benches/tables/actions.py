"""Creates the actions of tables without data files: protocol, metaData, and any number of `add`s, built column by
column.

Protocol: "Actions". File `k` is in one of 24 months and 8 regions and claims 1,000 rows. Its column `i0` has the
values `1000 * k` to `1000 * k + 999`, so the statistics show which files have a range of `i0`. The bounds of all other
columns are random. Arrow's kernels build the strings, so a million adds take only seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MONTHS = tuple(f"{year}-{month:02}" for year in (2023, 2024) for month in range(1, 13))
REGIONS = ("africa", "america", "antarctica", "arctic", "asia", "australia", "europe", "oceania")
PARTITION_COLUMNS = ("month", "region")
ROWS_PER_FILE = 1_000
CREATED_MS = 1_704_067_200_000


@dataclass(frozen=True)
class Shape:
    """How many data columns of each type there are: `i0…`, `d0…`, `s0…`. All have statistics."""

    longs: int
    doubles: int
    strings: int

    def columns(self) -> Iterator[tuple[str, str]]:
        for count, prefix, type_ in (
            (self.longs, "i", "long"),
            (self.doubles, "d", "double"),
            (self.strings, "s", "string"),
        ):
            yield from ((f"{prefix}{number}", type_) for number in range(count))


WIDE = Shape(6, 6, 4)
NARROW = Shape(3, 3, 2)


def metadata(schema: list[tuple[str, str]], partition_columns: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the `metaData` action of a table with these nullable columns."""
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in schema]
    return {
        "id": "6f1d4e3a-0000-4000-8000-00000000be7c",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}, separators=(",", ":")),
        "partitionColumns": list(partition_columns),
        "configuration": {},
        "createdTime": CREATED_MS,
    }


def protocol() -> dict[str, Any]:
    return {"minReaderVersion": 1, "minWriterVersion": 2}


def partitioned_metadata(shape: Shape) -> dict[str, Any]:
    """Returns the `metaData` action of a table with the data columns of `shape`, partitioned by `PARTITION_COLUMNS`."""
    return metadata([*shape.columns(), *((name, "string") for name in PARTITION_COLUMNS)], PARTITION_COLUMNS)


def lines(*actions: dict[str, Any]) -> str:
    """Formats actions as lines of a commit."""
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def add(path: Path, statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the action that adds a data file in the root of a table without partitions."""
    return {
        "add": {
            "path": path.name,
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": CREATED_MS,
            "dataChange": True,
            "stats": json.dumps(statistics, separators=(",", ":")),
        }
    }


def commit_info(version: int) -> dict[str, Any]:
    return {
        "commitInfo": {
            "timestamp": CREATED_MS + version * 1_000,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
        }
    }


@dataclass(frozen=True)
class Files:
    """The fields of consecutive `add`s, as Arrow columns."""

    path: pa.StringArray
    month: np.ndarray[Any, np.dtype[np.int64]]
    region: np.ndarray[Any, np.dtype[np.int64]]
    size: pa.Int64Array
    modification_time: pa.Int64Array
    bounds: tuple[tuple[str, str, pa.StringArray, pa.StringArray], ...]
    """The name and the type of each data column, with its minima and maxima as strings."""

    @classmethod
    def make(cls, shape: Shape, first: int, count: int) -> Files:
        """Returns the files `first` to `first + count - 1`. The same arguments give the same files."""
        random = np.random.default_rng((first, count))
        month, region = random.integers(0, len(MONTHS), count), random.integers(0, len(REGIONS), count)
        return cls(
            path=pa.array(_paths(random, month, region)),
            month=month,
            region=region,
            size=pa.array(random.integers(50_000_000, 150_000_000, count)),
            modification_time=pa.array(CREATED_MS + np.arange(first, first + count)),
            bounds=tuple(
                (name, type_, *_bounds(random, name, type_, first, count)) for name, type_ in shape.columns()
            ),
        )

    def __len__(self) -> int:
        return len(self.path)

    def statistics(self, quote: str = '"') -> pa.StringArray:
        """Returns the `stats` strings. `quote` is the quotation mark to use, which must be escaped if the strings
        become part of other JSON.
        """
        parts: list[str | pa.Array] = [f"{{{quote}numRecords{quote}:{ROWS_PER_FILE}"]
        for title, which in (("minValues", 2), ("maxValues", 3)):
            for number, bound in enumerate(self.bounds):
                before = f",{quote}{title}{quote}:{{" if number == 0 else ","
                mark = quote if bound[1] == "string" else ""
                parts += [f"{before}{quote}{bound[0]}{quote}:{mark}", bound[which], mark]
            parts.append("}")
        zeros = ",".join(f"{quote}{bound[0]}{quote}:0" for bound in self.bounds)
        parts.append(f",{quote}nullCount{quote}:{{{zeros}}}}}")
        return _join(parts)

    def json_lines(self) -> list[str]:
        """Returns the `add` actions as JSON, each on one line, without line ends."""
        parts: list[str | pa.Array] = [
            '{"add":{"path":"',
            self.path,
            '","partitionValues":{"month":"',
            pa.array(MONTHS).take(self.month),
        ]
        parts += [
            '","region":"',
            pa.array(REGIONS).take(self.region),
            '"},"size":',
            self.size.cast(pa.string()),
        ]
        parts += [
            ',"modificationTime":',
            self.modification_time.cast(pa.string()),
            ',"dataChange":true,"stats":"',
        ]
        parts += [self.statistics('\\"'), '"}}']
        texts: list[str] = _join(parts).to_pylist()
        return texts


def _paths(
    random: np.random.Generator, month: np.ndarray[Any, Any], region: np.ndarray[Any, Any]
) -> list[str]:
    digits = random.bytes(16 * len(month)).hex()
    paths = []
    for number, (in_month, in_region) in enumerate(zip(month.tolist(), region.tolist(), strict=True)):
        one = digits[32 * number : 32 * number + 32]
        uuid = f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}"
        folder = f"month={MONTHS[in_month]}/region={REGIONS[in_region]}"
        paths.append(f"{folder}/part-{number % 200:05}-{uuid}.c000.snappy.parquet")
    return paths


def _bounds(
    random: np.random.Generator, name: str, type_: str, first: int, count: int
) -> tuple[pa.StringArray, pa.StringArray]:
    low: np.ndarray[Any, Any]
    high: np.ndarray[Any, Any]
    if name == "i0":
        low = np.arange(first, first + count) * ROWS_PER_FILE
        high = low + ROWS_PER_FILE - 1
    elif type_ == "double":
        low, high = random.integers(0, 5_000, count) / 10_000, random.integers(5_000, 10_000, count) / 10_000
    else:
        low, high = random.integers(100_000, 500_000, count), random.integers(500_000, 1_000_000, count)
    return pa.array(low).cast(pa.string()), pa.array(high).cast(pa.string())


def _join(parts: list[str | pa.Array]) -> pa.StringArray:
    """Joins constant strings and string columns, element by element."""
    return pc.binary_join_element_wise(
        *(pa.scalar(part) if isinstance(part, str) else part for part in parts), ""
    )
