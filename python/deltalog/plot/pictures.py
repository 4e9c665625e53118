"""Makes the content of each plot from its numbers: titles, labels and summaries."""

from datetime import datetime, timedelta, timezone
from math import ceil, isfinite

from deltalog.escape import visible
from deltalog.plot.numbers.commits import Commits
from deltalog.plot.numbers.files import FileSizes, PartitionSizes
from deltalog.plot.numbers.growth import Size
from deltalog.plot.numbers.overlap import Overlap
from deltalog.plot.picture import Bars, Curve, Lines, Picture, amount
from deltalog.words import counted, size

__all__ = ["commits_picture", "files_picture", "growth_picture", "overlap_picture"]

_MOST_PARTITIONS = 20
_MOST_OPERATIONS = 5
_TICKS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = 86_400_000


def files_picture(numbers: FileSizes, name: str) -> Picture:
    """Returns the plot of the sizes of files."""
    title = f"Files of {name}"
    if not numbers.files or numbers.median_size is None:
        return Picture(title, "The table has no files.", [])
    files, middle = counted(numbers.files, "file"), size(round(numbers.median_size))
    where = f" in {counted(len(numbers.partitions), 'partition')}" if numbers.partitions else ""
    summary = f"{files}{where}, {size(numbers.size_in_bytes)}. The median is {middle}."
    panels = [
        Bars(
            "Files by size",
            [f"{amount(each.start, 'bytes')} to {amount(each.end, 'bytes')}" for each in numbers.ranges],
            {"files": [each.files for each in numbers.ranges]},
            [f"{each.files:,}" for each in numbers.ranges],
        )
    ]
    if numbers.partitions:
        panels.append(_partitions(numbers))
    return Picture(title, summary, [*panels])


def _partitions(numbers: FileSizes) -> Bars:
    by = visible(", ".join(numbers.partition_columns))
    shown, title = numbers.partitions, f"Bytes by {by}"
    if len(shown) > _MOST_PARTITIONS:
        shown = sorted(shown, key=lambda each: -each.files)[:_MOST_PARTITIONS]
        title = f"Bytes by {by}: the {_MOST_PARTITIONS} partitions with the most files"
    return Bars(
        title,
        [_partition(each) for each in shown],
        {"bytes": [each.size_in_bytes for each in shown]},
        [f"{size(each.size_in_bytes)}, {counted(each.files, 'file')}" for each in shown],
        "bytes",
    )


def _partition(partition: PartitionSizes) -> str:
    return visible(", ".join("NULL" if value is None else value for value in partition.values)) or "''"


def overlap_picture(numbers: Overlap, name: str, parts: int) -> Picture:
    """Returns the plot of the overlap of files."""
    column = visible(numbers.column)
    title = f"Overlap of files of {name} in {column}"
    if not numbers.files:
        return Picture(title, "The table has no files.", [])
    of = counted(numbers.files, "file")
    summary = (
        f"A filter on one value reads {numbers.mean:,.1f} of {of} on average, and {numbers.most:,} at most."
    )
    if numbers.unknown:
        summary += f" Every filter reads {counted(numbers.unknown, 'file')} whose bounds are not in the log."
    if numbers.empty:
        summary += f" No filter on a value reads {counted(numbers.empty, 'file')} without values."
    found = numbers.parts(parts)
    if not found:
        return Picture(title, summary, [])
    low, high = numbers.low, numbers.high
    lines = [(max(span.low, low), min(span.high, high) + numbers.end - high) for span in numbers.spans]
    step = -(-len(lines) // _MOST_LINES)
    every = "a line for each file" if step == 1 else f"a line for one of {step} files"
    ticks = sorted({low + (high - low) * at / (_TICKS - 1) for at in range(_TICKS)})
    if numbers.is_whole:
        ticks = sorted({float(round(at)) for at in ticks})
    panel = Lines(
        f"From the smallest to the largest value of {column}, {every}",
        lines[::step],
        f"Files that a filter on one value of {column} reads",
        [(part.low, part.high, part.files) for part in found],
        [(at, visible(numbers.label(at))) for at in ticks if isfinite(at)],
        numbers.files,
        [visible(numbers.label(ceil(part.low) if numbers.is_whole else part.low)) for part in found],
    )
    return Picture(title, summary, [panel])


_MOST_LINES = 1000


def growth_picture(numbers: list[Size], name: str) -> Picture:
    """Returns the plot of a table's growth."""
    first, newest = numbers[0], numbers[-1]
    rows = "an unknown number of rows" if newest.rows is None else counted(newest.rows, "row")
    summary = (
        f"{rows[0].upper()}{rows[1:]} in {counted(newest.files, 'file')} of {size(newest.size_in_bytes)} at version "
        f"{newest.version}. The commits since version {first.version} take up {size(newest.log_bytes)}."
    )
    xs = [each.version for each in numbers]
    panels = [
        Curve("Rows", "version", xs, [each.rows for each in numbers]),
        Curve("Files", "version", xs, [each.files for each in numbers]),
        Curve("Bytes of the files", "version", xs, [each.size_in_bytes for each in numbers], "bytes"),
        Curve(
            "Bytes of the commits in the log", "version", xs, [each.log_bytes for each in numbers], "bytes"
        ),
    ]
    return Picture(f"Growth of {name}", summary, [*panels])


def commits_picture(numbers: Commits, name: str) -> Picture:
    """Returns the plot of the commits over time."""
    title = f"Commits of {name}"
    if not numbers.commits:
        return Picture(title, "The log has no commits with a time.", [])
    most = numbers.operations[:_MOST_OPERATIONS]
    parts: dict[str, list[float]] = {
        visible(operation): [period.operations.get(operation, 0) for period in numbers.periods]
        for operation in most
    }
    if len(numbers.operations) > len(most):
        parts["others"] = [
            sum(count for operation, count in period.operations.items() if operation not in most)
            for period in numbers.periods
        ]
    labels = [_moment(period.start, numbers.length) for period in numbers.periods]
    per = _span(numbers.length)
    totals = [sum(period.operations.values()) for period in numbers.periods]
    notes = [f"{total:,}" if total else "" for total in totals]
    panels = [Bars(f"Commits, {per} per bar", labels, parts, notes, is_time=True)]
    was = "was" if numbers.overtaken == 1 else "were"
    summary = (
        f"{counted(numbers.commits, 'commit')}; {numbers.overtaken:,} of them {was} overtaken by others."
    )
    if numbers.overtaken:
        overtaken = [period.overtaken for period in numbers.periods]
        panels.append(
            Bars(
                f"Commits that others have overtaken, {per} per bar",
                labels,
                {"overtaken": [*overtaken]},
                [f"{count:,}" if count else "" for count in overtaken],
                is_time=True,
            )
        )
    return Picture(title, summary, [*panels])


def _moment(milliseconds: int, length: int) -> str:
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    if length >= _DAY:
        return f"{time:%Y-%m-%d}"
    return f"{time:%m-%d %H:%M}" if length >= 60_000 else f"{time:%H:%M:%S}"


def _span(milliseconds: int) -> str:
    for length, noun in ((_DAY, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second")):
        if milliseconds >= length:
            return counted(milliseconds // length, noun)
    return f"{milliseconds} ms"
