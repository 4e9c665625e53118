"""The content of a plot, before it is drawn. The same panels become text, a matplotlib figure or an altair chart."""

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Bars", "Curve", "Lines", "Panel", "Picture", "Unit", "amount", "byte_step"]

Unit: TypeAlias = Literal["count", "bytes"]


class Bars(NamedTuple):
    """A panel with a bar for each label. A bar may consist of several parts."""

    title: str
    labels: list[str]
    parts: dict[str, list[float]]
    """The lengths of each part in all bars, by the name of the part."""
    notes: list[str]
    """The note beside each bar."""
    unit: Unit = "count"
    is_time: bool = False
    """Whether the labels are consecutive periods of time."""


class Curve(NamedTuple):
    """A panel with a step curve, which is constant from one whole number to the next."""

    title: str
    x_title: str
    xs: list[int]
    ys: list[float | None]
    unit: Unit = "count"


class Lines(NamedTuple):
    """A panel with a horizontal line for each file, and the number of lines above each part of the axis."""

    title: str
    lines: list[tuple[float, float]]
    """The beginning and the end of each line."""
    parts_title: str
    parts: list[tuple[float, float, int]]
    """The beginning and end of each part of the axis, and the maximum number of lines above a point of this part."""
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
    """One or two sentences that summarize the plot."""
    panels: list[Panel]


def amount(value: float, unit: Unit) -> str:
    """Returns a number as a short label of an axis."""
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
    """Returns the distance between two labels of an axis of bytes: a power of two with which there are at most six
    labels.
    """
    return 2.0 ** (int(top) // 3).bit_length()


_BYTES = (" B", " KiB", " MiB", " GiB", " TiB", " PiB")
_COUNTS = ("", " K", " M", " G")
