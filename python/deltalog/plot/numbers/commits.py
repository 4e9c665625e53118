"""The commits of a table over time, and how often one writer has overtaken another."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = ["Commits", "Period", "commits_of"]

_SECOND = 1_000
_DAY = 86_400 * _SECOND
_STEPS = [
    *(seconds * _SECOND for seconds in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600)),
    *(days * _DAY for days in (1, 7, 28, 91, 364, 3640)),
]
"""The lengths that periods may have, in milliseconds."""


class Period(NamedTuple):
    """The commits of a period."""

    start: int
    """The beginning of the period, in milliseconds since 1970."""
    operations: dict[str, int]
    """The number of commits of each operation."""
    overtaken: int
    """The number of commits that other commits have overtaken. The writer of such a commit had not read the version
    just before its own, and had to check that the commits in between do not conflict.
    """


class Commits(NamedTuple):
    """The commits of a table in periods of equal length."""

    commits: int
    overtaken: int
    length: int
    """The length of a period, in milliseconds."""
    periods: list[Period]
    """All periods from the first commit to the last, including periods without commits."""
    operations: list[str]
    """The names of the operations, the most frequent one first."""


def commits_of(table: "DeltaTable", last: int | None = None, most: int = 40) -> Commits:
    """Returns the commits up to the version that is open, in at most `most` periods. `last` limits the result to this
    number of the newest commits.
    """
    history = [info for info in table.history(last) if isinstance(info.get("timestamp"), int)]
    if not history:
        return Commits(0, 0, _SECOND, [], [])
    times = [info["timestamp"] for info in history]
    length = _length(min(times), max(times), most)
    first = min(times) // length
    periods = [Period((first + at) * length, {}, 0) for at in range(max(times) // length - first + 1)]
    operations = Counter[str]()
    for info in reversed(history):
        at = info["timestamp"] // length - first
        operation = str(info.get("operation") or "unknown")
        operations[operation] += 1
        counts = periods[at].operations
        counts[operation] = counts.get(operation, 0) + 1
        periods[at] = periods[at]._replace(overtaken=periods[at].overtaken + _is_overtaken(info))
    names = [name for name, _ in operations.most_common()]
    return Commits(len(history), sum(period.overtaken for period in periods), length, periods, names)


def _length(first: int, last: int, most: int) -> int:
    """Returns the shortest length of a period with which there are at most `most` periods."""
    for length in _STEPS:
        if last // length - first // length < most:
            return length
    length = _STEPS[-1]
    while last // length - first // length >= most:
        length *= 2
    return length


def _is_overtaken(info: Mapping[str, Any]) -> bool:
    read = info.get("readVersion")
    return isinstance(read, int) and read >= 0 and info["version"] - read > 1
