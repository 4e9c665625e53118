"""Draws plots as text, with block characters, within the width of a terminal."""

from collections.abc import Iterator, Sequence
from math import ceil

from deltalog.cli.layout import Style, cut, padded, width_of, wrapped
from deltalog.plot.picture import Bars, Curve, Lines, Picture, amount

__all__ = ["text_lines"]

_WIDTH = 80
"""The width of a plot if the output is not a terminal."""
_HEIGHT = 6
"""The height of a curve in lines."""
_LEAST_BAR = 8
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"


def text_lines(picture: Picture, style: Style) -> Iterator[str]:
    """Yields the lines of a plot."""
    width = style.width or _WIDTH
    for line in wrapped(picture.title, width):
        yield style.bold(line)
    yield from wrapped(picture.summary, width)
    for panel in picture.panels:
        yield ""
        title = panel.parts_title if isinstance(panel, Lines) else panel.title
        for line in wrapped(title, width):
            yield style.dim(line)
        if isinstance(panel, Bars):
            yield from _bars(panel, width, style)
        elif isinstance(panel, Curve):
            yield from _curve(panel, width, style)
        else:
            counts = [float(count) for _, _, count in panel.parts]
            notes = [f"{count:,}" for _, _, count in panel.parts]
            yield from _rows(panel.labels, counts, notes, panel.most, width, style)


def _bars(panel: Bars, width: int, style: Style) -> Iterator[str]:
    totals = [sum(lengths) for lengths in zip(*panel.parts.values(), strict=True)]
    yield from _rows(panel.labels, totals, panel.notes, max(totals), width, style)
    if len(panel.parts) > 1:
        sums = (f"{name} {amount(sum(lengths), panel.unit)}" for name, lengths in panel.parts.items())
        yield from wrapped(", ".join(sums), width)


def _rows(
    labels: Sequence[str],
    values: Sequence[float],
    notes: Sequence[str],
    most: float,
    width: int,
    style: Style,
) -> Iterator[str]:
    """Yields a line for each bar: label, bar, note."""
    noted = max(map(width_of, notes))
    named = max(map(width_of, labels))
    if named + noted + _LEAST_BAR + 3 > width:
        # The bar gets its width first, then the note. The label gets the remaining width.
        named = max(min(named, width - noted - _LEAST_BAR - 3), 1)
        noted = max(min(noted, width - named - 4), 0)
    room = max(width - named - noted - 3, 1)
    for label, value, note in zip(labels, values, notes, strict=True):
        bar = _bar(value / most * room if most else 0, style)
        shown = f"{bar} {cut(note, noted, style.ellipsis)}".strip() if noted else bar
        yield f"{padded(cut(label, named, style.ellipsis), named, right=False)}  {shown}".rstrip()


def _bar(length: float, style: Style) -> str:
    """Returns a bar. A value greater than zero is always visible."""
    if not style.has_blocks:
        return "#" * (ceil(length) if 0 < length < 1 else round(length))
    eighths = max(round(length * 8), 1) if length > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _curve(panel: Curve, width: int, style: Style) -> Iterator[str]:
    """Yields the lines of a filled curve, with labels for the largest value and zero beside it."""
    known = [value for value in panel.ys if value is not None]
    top = max(known, default=0)
    if not known:
        yield "unknown"
        return
    if top == 0:
        yield "0"
        return
    marks = [amount(top, panel.unit), "0"]
    beside = max(map(len, marks))
    room = max(width - beside - 1, 1)
    columns = _resampled(panel.ys, room)
    for row in range(_HEIGHT - 1, -1, -1):
        mark = marks[0] if row == _HEIGHT - 1 else marks[1] if row == 0 else ""
        cells = "".join(_cell(value, top, row, style) for value in columns)
        yield f"{mark:>{beside}} {cells}".rstrip()
    first, last = str(panel.xs[0]), str(panel.xs[-1])
    if len(panel.xs) > 1 and len(first) + len(last) < len(columns):
        yield f"{' ' * beside} {first}{last:>{len(columns) - len(first)}}"
    else:
        yield f"{' ' * beside} {first if first == last else f'{first} to {last}'}"


def _resampled(values: Sequence[float | None], room: int) -> list[float | None]:
    """Fits the values to the columns of the terminal: repeats them if there are fewer values than columns, and
    otherwise keeps the last of the values that fall into each column.
    """
    if len(values) <= room:
        wide = max(room // len(values), 1)
        return [value for value in values for _ in range(wide)]
    return [values[(at + 1) * len(values) // room - 1] for at in range(room)]


def _cell(value: float | None, top: float, row: int, style: Style) -> str:
    if value is None:
        return "?" if row == 0 else " "
    filled = value / top * _HEIGHT - row
    if not style.has_blocks:
        return "#" if filled >= 0.5 or (row == 0 and value > 0) else " "
    eighths = min(max(round(filled * 8), 0), 8)
    return _LEVELS[max(eighths, 1) if row == 0 and value > 0 else eighths]
