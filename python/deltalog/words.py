"""Formats numbers, sizes and times for people."""

from datetime import datetime, timedelta, timezone

__all__ = ["count", "counted", "iso", "moment", "size"]


def count(number: int | None) -> str:
    """Returns a number with separators."""
    return "unknown" if number is None else f"{number:,}"


def counted(number: int, noun: str) -> str:
    """Returns a number with a noun in the singular or plural: `1 file`, `2 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Returns a number of bytes in a suitable unit, such as MiB."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024:
            return f"{number} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} PiB"


def _time(milliseconds: int) -> datetime | None:
    """Returns a timestamp of the log as a `datetime`; None if Python's calendar does not include it."""
    try:
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def moment(milliseconds: int | None) -> str:
    """Returns a time in UTC, for people."""
    if milliseconds is None:
        return "unknown"
    time = _time(milliseconds)
    return f"{milliseconds} ms" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def iso(milliseconds: int | None) -> str | None:
    """Returns a time in RFC 3339, for programs."""
    if milliseconds is None:
        return None
    time = _time(milliseconds)
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
