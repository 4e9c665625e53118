"""What a plot shows, before it is drawn: the same panels become text, a figure of matplotlib or a chart of altair."""

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Bars", "Curve", "Lines", "Panel", "Picture", "Unit", "amount", "byte_step"]

Unit: TypeAlias = Literal["count", "bytes"]


class Bars(NamedTuple):
    """A bar for each label, which may consist of several parts."""

    title: str
    labels: list[str]
    parts: dict[str, list[float]]
    """By the name of a part: its length in each bar."""
    notes: list[str]
    """What is written beside each bar."""
    unit: Unit = "count"
    is_time: bool = False
    """Whether the labels are periods, one after another."""


class Curve(NamedTuple):
    """A number that stays the same from one whole number to the next."""

    title: str
    x_title: str
    xs: list[int]
    ys: list[float | None]
    unit: Unit = "count"


class Lines(NamedTuple):
    """A horizontal line for each file, and how many lines there are above each part of the axis."""

    title: str
    lines: list[tuple[float, float]]
    """The beginnings and the ends."""
    parts_title: str
    parts: list[tuple[float, float, int]]
    """Beginning and end of each part of the axis, and the number of lines at one point there, at most."""
    ticks: list[tuple[float, str]]
    most: int
    """The number of all files."""
    labels: list[str]
    """The beginning of each part, as text."""


Panel: TypeAlias = Bars | Curve | Lines


class Picture(NamedTuple):
    """A plot."""

    title: str
    summary: str
    """What the plot says, in one or two sentences."""
    panels: list[Panel]


def amount(value: float, unit: Unit) -> str:
    """Returns a number on an axis, as short text."""
    base, names = (1024, _BYTES) if unit == "bytes" else (1000, _COUNTS)
    power = 0
    while power + 1 < len(names) and round(abs(value) / base**power) >= (10_000 if unit == "count" else base):
        power += 1
    shown = value / base**power
    return (
        f"{shown:.0f}{names[power]}"
        if shown == round(shown) or shown >= 100
        else f"{shown:.3g}{names[power]}"
    )


def byte_step(top: float) -> float:
    """Returns the distance between two marks of an axis of bytes, a power of two; there are at most six."""
    return 2.0 ** (int(top) // 3).bit_length()


_BYTES = (" B", " KiB", " MiB", " GiB", " TiB", " PiB")
_COUNTS = ("", " K", " M", " G")
