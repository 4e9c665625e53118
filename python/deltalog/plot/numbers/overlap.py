"""How the files of a table overlap in a column. The more files may contain a value, the more files a filter on it must
read.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.arrow_objects import objects
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument
from deltalog.schema import PrimitiveType, StructType

if TYPE_CHECKING:
    from deltalog.schema import Field
    from deltalog.table import DeltaTable

__all__ = ["Overlap", "Part", "Span", "overlap_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOST_NAMES = 20


class Span(NamedTuple):
    """The bounds of a file as positions on the axis. An unknown bound is infinite."""

    low: float
    high: float


class Part(NamedTuple):
    """A part of the axis, with the maximum number of files that a filter on one value in this part reads."""

    low: float
    high: float
    files: int


class Overlap(NamedTuple):
    """The bounds of the files of a table in one column."""

    version: int
    column: str
    files: int
    """The number of all files."""
    unknown: int
    """The number of files that have no bounds in the log. Every filter reads them."""
    empty: int
    """The number of files in which the column is NULL in all rows. No filter on a value reads them."""
    spans: list[Span]
    """The bounds of all other files, in order."""
    mean: float
    """The average number of files that a filter on one value reads. The average is over all minima and maxima of the
    files.
    """
    most: int
    """The maximum number of files that a filter on one value reads."""
    low: float
    """The beginning of the axis."""
    high: float
    """The end of the axis."""
    is_whole: bool
    """Whether all values are at whole-number positions."""
    label: Callable[[float], str]
    """Returns the value at a position, as a label."""

    @property
    def end(self) -> float:
        """The end of the last value on the axis. A whole number extends to the next whole number."""
        return self.high + 1 if self.is_whole else self.high

    def parts(self, number: int) -> list[Part]:
        """Divides the axis into parts of equal width, at most `number`; none if no file has bounds."""
        bounds = sorted({at for span in self.spans for at in span if isfinite(at)})
        if not bounds:
            return []
        lows, highs = sorted(span.low for span in self.spans), sorted(span.high for span in self.spans)
        width = self.end - self.low
        number = int(max(min(number, width), 1)) if self.is_whole or width == 0 else number
        found = []
        for at in range(number):
            start, end = self.low + width * at / number, self.low + width * (at + 1) / number
            # The last part includes its end.
            last = bisect_right(bounds, end) if at + 1 == number else bisect_left(bounds, end)
            within = bounds[bisect_left(bounds, start) : last]
            points = within or [float(ceil(start)) if self.is_whole else (start + end) / 2]
            files = max(bisect_right(lows, point) - bisect_left(highs, point) for point in points)
            found.append(Part(start, end, files + self.unknown))
        return found


def overlap_of(table: "DeltaTable", column: str) -> Overlap:
    """Returns how the files of the version that is open overlap in a column.

    Raises:
        InvalidArgumentError: there is no such column, or columns of its type have no bounds.
    """
    path, field = _found(table, column)
    kind = str(field.type)
    is_partition = len(path) == 1 and path[0] in table.metadata().partition_columns
    version = table.version()
    bounds: list[tuple[Any, Any]] = []
    files = unknown = empty = 0
    for file in objects(table.files(columns=["partition_values" if is_partition else "stats"])):
        files += 1
        low, high, is_null = _bounds(file, path, is_partition=is_partition)
        low, high = _parsed(low, kind), _parsed(high, kind)
        if is_null:
            empty += 1
        elif low is None and high is None:
            unknown += 1
        else:
            bounds.append((low, high))
    place, label, is_whole = _axis(kind, [at for pair in bounds for at in pair if at is not None])
    spans = sorted(
        Span(-inf if low is None else place(low), inf if high is None else place(high))
        for low, high in bounds
    )
    ends = [at for span in spans for at in span if isfinite(at)]
    lows, highs = sorted(span.low for span in spans), sorted(span.high for span in spans)
    reads = [bisect_right(lows, at) - bisect_left(highs, at) + unknown for at in ends]
    return Overlap(
        version,
        column,
        files,
        unknown,
        empty,
        spans,
        sum(reads) / len(reads) if reads else float(unknown),
        max(reads, default=unknown),
        min(ends, default=0.0),
        max(ends, default=0.0),
        is_whole,
        label,
    )


def _found(table: "DeltaTable", column: object) -> tuple[list[str], "Field"]:
    """Returns the path of a column, and the column's definition."""
    if not isinstance(column, str):
        raise wrong_argument("column", column, "the name of a column")
    fields = table.schema().fields
    parts = [column] if any(field.name.lower() == column.lower() for field in fields) else column.split(".")
    path: list[str] = []
    found: Field | None = None
    for part in parts:
        if path:
            fields = list(found.type.fields) if found and isinstance(found.type, StructType) else []
        matching = [field for field in fields if field.name == part] or [
            field for field in fields if field.name.lower() == part.lower()
        ]
        if len(matching) != 1:
            names = [field.name for field in fields[:_MOST_NAMES]]
            shown = f"one of {', '.join(names)}" if names else "the name of a column"
            raise hinted(InvalidArgumentError(f"column: there is no column {column!r}"), f"pass {shown}")
        found = matching[0]
        path.append(found.name)
    if found is None or not isinstance(found.type, PrimitiveType):
        kind = "unknown" if found is None else type(found.type).__name__.removesuffix("Type").lower()
        raise hinted(
            InvalidArgumentError(f"column: the column {column!r} is of type {kind}, which has no order"),
            "pass a column of numbers, texts, dates or times",
        )
    return path, found


def _bounds(file: dict[str, Any], path: Sequence[str], *, is_partition: bool) -> tuple[Any, Any, bool]:
    """Returns the bounds of a file, and whether the column is NULL in all rows."""
    if is_partition:
        value = (file["partition_values"] or {}).get(path[0])
        return value, value, value is None
    stats = file["stats"] or {}
    low, high, nulls = (_within(stats.get(name), path) for name in ("minValues", "maxValues", "nullCount"))
    rows = stats.get("numRecords")
    return low, high, rows is not None and nulls is not None and nulls == rows


def _within(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _parsed(value: Any, kind: str) -> Any:
    """Converts a bound from JSON to a value that can be compared; None if the bound is unknown."""
    if value is None:
        return None
    if kind == "date":
        return _or_none(lambda: date.fromisoformat(value).toordinal())
    if kind.startswith("timestamp"):
        return _or_none(lambda: _microseconds(value))
    if kind in ("string", "binary") or kind.startswith(("char", "varchar")):
        return value
    # NaN and infinity are strings in JSON. NaN is larger than all other values, so it is not used as a bound.
    number = float(value) if isinstance(value, str) else value
    return None if number != number else number


def _or_none(parse: Callable[[], Any]) -> Any:
    try:
        return parse()
    except (ValueError, OverflowError):  # Python's dates only include the years 1 to 9999.
        return None


def _microseconds(text: str) -> int:
    whole, point, fraction = text.removesuffix("Z").partition(".")
    time = datetime.fromisoformat(whole + (point and f".{fraction:0<6.6}"))
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return (time - _EPOCH) // timedelta(microseconds=1)


def _axis(kind: str, values: list[Any]) -> tuple[Callable[[Any], float], Callable[[float], str], bool]:
    """Returns functions for the position of a value and for the text at a position, and whether positions are whole."""
    if kind == "date":
        return float, lambda at: date.fromordinal(round(at)).isoformat(), True
    if kind.startswith("timestamp"):
        return float, lambda at: f"{_EPOCH + timedelta(microseconds=round(at)):%Y-%m-%d %H:%M:%S}", True
    if (
        kind in ("string", "binary", "boolean")
        or kind.startswith(("char", "varchar"))
        or not all(map(isfinite, values))
    ):
        # Strings have an order, but no distances.
        known = sorted(set(values))
        places = {value: float(at) for at, value in enumerate(known)}
        texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in known]
        return places.__getitem__, lambda at: texts[min(max(round(at), 0), len(texts) - 1)], True
    is_whole = kind in ("byte", "short", "integer", "long")
    return float, lambda at: f"{round(at):,}" if is_whole else f"{at:,.6g}", is_whole
