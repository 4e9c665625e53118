"""The sizes of a table's files, and how they are distributed over its partitions."""

import math
from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.arrow_objects import objects

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = ["FileSizes", "PartitionSizes", "SizeRange", "file_sizes"]

_MOST_RANGES = 12
"""The maximum number of size ranges."""


class SizeRange(NamedTuple):
    """The number of files whose sizes are in a range."""

    start: int
    """The lower end of the range in bytes, which is included."""
    end: int
    """The upper end of the range in bytes, which is excluded."""
    files: int


class PartitionSizes(NamedTuple):
    """The files of a partition."""

    values: tuple[str | None, ...]
    """The values of the partition columns, as a label."""
    files: int
    size_in_bytes: int
    median_size: float


class FileSizes(NamedTuple):
    """The sizes of the files of a table."""

    version: int
    files: int
    size_in_bytes: int
    median_size: float | None
    """The median of the sizes; None if there are no files."""
    ranges: list[SizeRange]
    """The numbers of files in size ranges, whose ends are powers of two, from the smallest size to the largest."""
    partition_columns: list[str]
    partitions: list[PartitionSizes]
    """All partitions in the order of their values; none if the table is not partitioned."""


def file_sizes(table: "DeltaTable") -> FileSizes:
    """Returns the file sizes of the version that is open."""
    columns = table.metadata().partition_columns
    wanted = ["size", "partition_values"] if columns else ["size"]
    version = table.version()
    sizes: list[int] = []
    by_partition: dict[tuple[Any, ...], list[int]] = {}
    for file in objects(table.files(columns=wanted)):
        size = int(file["size"])
        sizes.append(size)
        if columns:
            values: Mapping[str, Any] = file["partition_values"] or {}
            by_partition.setdefault(tuple(values.get(name) for name in columns), []).append(size)
    partitions = [
        PartitionSizes(tuple(map(_text, values)), len(held), sum(held), median(held))
        for values, held in sorted(by_partition.items(), key=lambda entry: _order(entry[0]))
    ]
    middle = median(sizes) if sizes else None
    return FileSizes(version, len(sizes), sum(sizes), middle, _ranges(sizes), columns, partitions)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _order(values: tuple[Any, ...]) -> tuple[tuple[int, Any], ...]:
    """Returns a key that sorts values of one type: NULL first, and NaN, which is a string in JSON, after the
    numbers.
    """
    return tuple(
        (0, 0) if value is None else (2, value) if isinstance(value, str) else (1, value) for value in values
    )


def _ranges(sizes: list[int]) -> list[SizeRange]:
    """Returns the numbers of files in size ranges whose ends are powers of two."""
    if not sizes:
        return []
    least, most = (max(size, 1).bit_length() - 1 for size in (min(sizes), max(sizes)))
    step = math.ceil((most - least + 1) / _MOST_RANGES)
    first = least - least % step
    counts = [0] * ((most - first) // step + 1)
    for size in sizes:
        counts[(max(size, 1).bit_length() - 1 - first) // step] += 1
    return [
        SizeRange(1 << first + at * step, 1 << first + (at + 1) * step, count)
        for at, count in enumerate(counts)
    ]
