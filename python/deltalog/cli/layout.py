"""Formats tables, and lists of names with values, as lines of text.

- In a terminal, no line is longer than the terminal is wide. Long values are cut off and end with `…`. If columns would
  become too narrow, each row is printed as a list of names and values instead, where values are not cut off.
- In a pipe, nothing is cut off.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from deltalog.escape import visible

__all__ = ["Style", "cut", "listed", "padded", "tabular", "width_of", "wrapped"]

_GAP = 2
"""The number of spaces between two columns."""
_LEAST = 8
"""The minimum width of a column whose values are cut off."""
_SAMPLE = 1000
"""The number of rows, at the beginning of a table, that determine the widths of the columns."""
_NUMBER = re.compile(r"[-+]?[\d,]+(\.\d+)?([eE][-+]?\d+)?|NaN|-?inf|-")


class Style:
    """The style of lines: their width, and whether they have colors."""

    def __init__(self, width: int | None = None, *, color: bool = False, ellipsis: str = "…") -> None:
        self.width = width
        """The width of the terminal, or None if the output does not go to a terminal."""
        self.color = color
        self.ellipsis = ellipsis

    @property
    def has_blocks(self) -> bool:
        """Whether the output can show block characters."""
        return self.ellipsis == "…"

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.color else text

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.color else text


def width_of(text: str) -> int:
    """Returns the width of a string in a terminal, where some characters take two columns, and others none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(mark) or mark in "\u200c\u200d\ufe0e\ufe0f" else 1 + (east_asian_width(mark) in "WF")
        for mark in text
    )


def cut(text: str, most: int, ellipsis: str) -> str:
    """Truncates a string that is wider than `most`."""
    if width_of(text) <= most:
        return text
    kept, left = [], most - len(ellipsis)
    for mark in text:
        left -= width_of(mark)
        if left < 0:
            break
        kept.append(mark)
    return "".join(kept) + ellipsis


def padded(text: str, width: int, *, right: bool) -> str:
    """Pads a string with spaces, on the right or on the left."""
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def tabular(names: Sequence[str], rows: Iterable[Sequence[str | None]], style: Style) -> Iterator[str]:
    """Yields the lines of a table. None is shown as NULL. Holds only the first thousand rows in memory."""
    heads = [visible(name) for name in names]
    shown = ([None if value is None else visible(value) for value in row] for row in rows)
    sample = list(islice(shown, _SAMPLE))
    widths = [
        max(chain([width_of(head)], (4 if row[at] is None else width_of(row[at] or "") for row in sample)))
        for at, head in enumerate(heads)
    ]
    every = chain(sample, shown)
    if style.width is not None:
        fitted = _fitted(widths, style.width)
        if fitted is None:
            yield from _stacked(heads, every, style)
            return
        widths = fitted
    right = [
        bool(sample) and all(row[at] is None or _NUMBER.fullmatch(row[at] or "") for row in sample)
        for at in range(len(heads))
    ]

    def line(cells: Sequence[str | None], *, is_head: bool = False) -> str:
        parts = []
        for cell, width, is_right in zip(cells, widths, right, strict=True):
            text = "NULL" if cell is None else cell
            text = cut(text, width, style.ellipsis) if style.width is not None else text
            whole = padded(text, width, right=is_right)
            parts.append(style.bold(whole) if is_head else style.dim(whole) if cell is None else whole)
        return (" " * _GAP).join(parts).rstrip()

    if not heads:
        return
    yield line(heads, is_head=True)
    yield (" " * _GAP).join("-" * width for width in widths)
    yield from map(line, every)


def _fitted(widths: list[int], most: int) -> list[int] | None:
    """Returns widths with which all columns fit into a line, or None if a column would become too narrow."""
    room = most - _GAP * (len(widths) - 1)
    if sum(widths) <= room:
        return widths
    cap = max(widths, default=0)
    while cap > _LEAST and sum(min(width, cap) for width in widths) > room:
        cap -= 1
    fitted = [min(width, cap) for width in widths]
    return fitted if sum(fitted) <= room else None


def _stacked(heads: list[str], rows: Iterable[Sequence[str | None]], style: Style) -> Iterator[str]:
    """Yields each row as a list of names and values."""
    for number, row in enumerate(rows, 1):
        yield style.dim(f"-- {number}")
        pairs = [(head, "NULL" if cell is None else cell) for head, cell in zip(heads, row, strict=True)]
        yield from listed(pairs, style)


def listed(pairs: Sequence[tuple[str, str]], style: Style) -> Iterator[str]:
    """Yields a line for each name and its value. In a terminal, long values continue on the next line."""
    shown = [(visible(name), visible(value)) for name, value in pairs]
    widest = max((width_of(name) for name, _ in shown), default=0)
    if style.width is not None:
        widest = min(widest, max(style.width // 2 - _GAP, 1))
    for name, value in shown:
        head = name if style.width is None else cut(name, widest, style.ellipsis)
        room = None if style.width is None else max(style.width - widest - _GAP, 1)
        for at, part in enumerate(wrapped(value, room)):
            first = style.bold(padded(head, widest, right=False)) if at == 0 else " " * widest
            yield f"{first}{' ' * _GAP}{part}".rstrip()


def wrapped(text: str, most: int | None) -> list[str]:
    """Breaks a string into lines, at spaces if possible."""
    if most is None or width_of(text) <= most:
        return [text]
    lines, line = [], ""
    for word in re.findall(r"\S+\s*|\s+", text):
        if line and width_of(line + word.rstrip()) > most:
            lines.append(line.rstrip())
            line = ""
        line += word
        while width_of(line.rstrip()) > most:
            kept = cut(line, most, "")
            # Each line gets at least one character, even if a character of width 2 does not fit into a width of 1.
            kept = kept or line[0]
            lines.append(kept)
            line = line[len(kept) :]
    return [*lines, line.rstrip()] if line.strip() else lines
