"""Formats tables and lists of named values as lines of text.

- In a terminal, no line is wider than it. Wide columns are cut, and end with `…`. If that would leave too little of
  them, each row becomes a list of names and values, one below the other, and nothing is cut.
- In a pipe, nothing is cut.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from deltalog.escape import visible

__all__ = ["Style", "listed", "tabular", "width_of"]

_GAP = 2
"""Spaces between two columns."""
_LEAST = 8
"""The least width to which a column is cut."""
_SAMPLE = 1000
"""The rows that decide how wide columns are."""
_NUMBER = re.compile(r"[-+]?[\d,]+(\.\d+)?([eE][-+]?\d+)?|NaN|-?inf|-")


class Style:
    """Settings for the appearance of lines."""

    def __init__(self, width: int | None = None, *, color: bool = False, ellipsis: str = "…") -> None:
        self.width = width
        """The width of the terminal; None if there is none."""
        self.color = color
        self.ellipsis = ellipsis

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.color else text

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.color else text


def width_of(text: str) -> int:
    """Returns how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(mark) or mark in "\u200c\u200d\ufe0e\ufe0f" else 1 + (east_asian_width(mark) in "WF")
        for mark in text
    )


def _cut(text: str, most: int, ellipsis: str) -> str:
    """Cuts a text that is wider than `most`."""
    if width_of(text) <= most:
        return text
    kept, left = [], most - len(ellipsis)
    for mark in text:
        left -= width_of(mark)
        if left < 0:
            break
        kept.append(mark)
    return "".join(kept) + ellipsis


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def tabular(names: Sequence[str], rows: Iterable[Sequence[str | None]], style: Style) -> Iterator[str]:
    """Yields the lines of a table; None is NULL. The rows after the first thousand are not held in memory."""
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
            text = _cut(text, width, style.ellipsis) if style.width is not None else text
            padded = _padded(text, width, right=is_right)
            parts.append(style.bold(padded) if is_head else style.dim(padded) if cell is None else padded)
        return (" " * _GAP).join(parts).rstrip()

    if not heads:
        return
    yield line(heads, is_head=True)
    yield (" " * _GAP).join("-" * width for width in widths)
    yield from map(line, every)


def _fitted(widths: list[int], most: int) -> list[int] | None:
    """Returns widths of columns that fit into a line; None if a column would be too narrow."""
    room = most - _GAP * (len(widths) - 1)
    if sum(widths) <= room:
        return widths
    cap = max(widths, default=0)
    while cap > _LEAST and sum(min(width, cap) for width in widths) > room:
        cap -= 1
    fitted = [min(width, cap) for width in widths]
    return fitted if sum(fitted) <= room else None


def _stacked(heads: list[str], rows: Iterable[Sequence[str | None]], style: Style) -> Iterator[str]:
    """Yields each row as names and values."""
    for number, row in enumerate(rows, 1):
        yield style.dim(f"-- {number}")
        pairs = [(head, "NULL" if cell is None else cell) for head, cell in zip(heads, row, strict=True)]
        yield from listed(pairs, style)


def listed(pairs: Sequence[tuple[str, str]], style: Style) -> Iterator[str]:
    """Yields names and values, one below the other. In a terminal, long values continue on the next line."""
    shown = [(visible(name), visible(value)) for name, value in pairs]
    widest = max((width_of(name) for name, _ in shown), default=0)
    if style.width is not None:
        widest = min(widest, max(style.width // 2 - _GAP, 1))
    for name, value in shown:
        head = name if style.width is None else _cut(name, widest, style.ellipsis)
        room = None if style.width is None else max(style.width - widest - _GAP, 1)
        for at, part in enumerate(_wrapped(value, room)):
            first = style.bold(_padded(head, widest, right=False)) if at == 0 else " " * widest
            yield f"{first}{' ' * _GAP}{part}".rstrip()


def _wrapped(text: str, most: int | None) -> list[str]:
    """Returns a text in lines, at its spaces where that is possible."""
    if most is None or width_of(text) <= most:
        return [text]
    lines, line = [], ""
    for word in re.findall(r"\S+\s*|\s+", text):
        if line and width_of(line + word.rstrip()) > most:
            lines.append(line.rstrip())
            line = ""
        line += word
        while width_of(line.rstrip()) > most:
            kept = _cut(line, most, "")
            # A wide character does not fit into a column of one.
            kept = kept or line[0]
            lines.append(kept)
            line = line[len(kept) :]
    return [*lines, line.rstrip()] if line.strip() else lines
