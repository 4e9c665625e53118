"""Draws plots with matplotlib. The colors of text and background come from matplotlib's settings, so its styles
apply.
"""

import io
from typing import TYPE_CHECKING, Any

from deltalog.extras import required
from deltalog.plot.picture import Bars, Curve, Lines, Panel, Picture, Unit, amount, byte_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLORS", "INSTALL", "figure_of"]

INSTALL = "pip install 'deltalog[plot]'"

COLORS = ("#4a8fc2", "#e08e2b", "#6fa33f", "#cf5540", "#9a70c4", "#8c8c8c")
"""Colors that are visible on white and on black."""

_WIDTH = 9.0
_BAR = 0.27
"""The height of a bar with its label."""
_LONGEST = 40
"""The maximum number of characters in a label."""
_LONGEST_NAME = 20
"""The maximum number of characters of a name in a legend."""
_MOST_TICKS = 12


def figure_of(picture: Picture) -> "Figure":
    """Returns a plot as a matplotlib figure. The figure belongs to no window, so it does not have to be closed."""
    figures: Any = required("matplotlib.figure", "deltalog.plot", INSTALL)

    class PlotFigure(figures.Figure):  # type: ignore[misc]
        """A figure that notebooks display even if `matplotlib.pyplot` was not imported."""

        def _repr_png_(self) -> bytes:
            image = io.BytesIO()
            self.savefig(image, format="png", dpi=100)
            return image.getvalue()

    heights = [height for panel in picture.panels for height in _heights(panel)]
    figure: Figure = PlotFigure(figsize=(_WIDTH, 1.0 + sum(heights)), layout="constrained")
    figure.suptitle(_text(picture.title), x=0.01, ha="left", fontweight="bold")
    whole = figure.add_gridspec(len(heights) + 1, 1, height_ratios=[0.3, *heights])
    summary = figure.add_subplot(whole[0])
    summary.axis("off")
    transforms: Any = required("matplotlib.transforms", "deltalog.plot", INSTALL)
    place = transforms.blended_transform_factory(figure.transFigure, summary.transAxes)
    summary.text(0.01, 0.5, _text(picture.summary), transform=place, va="center", wrap=True)
    at = 1
    for panel in picture.panels:
        if isinstance(panel, Lines):
            above = figure.add_subplot(whole[at])
            _lines(above, figure.add_subplot(whole[at + 1], sharex=above), panel)
        elif isinstance(panel, Curve):
            _curve(figure.add_subplot(whole[at]), panel)
        elif panel.is_time:
            _columns(figure.add_subplot(whole[at]), panel)
        else:
            _bars(figure.add_subplot(whole[at]), panel)
        at += len(_heights(panel))
    return figure


def _heights(panel: Panel) -> list[float]:
    """Returns the heights of a panel's axes, in inches."""
    if isinstance(panel, Lines):
        return [min(max(1.0, 0.06 * len(panel.lines)), 4.0) + 0.4, 2.0]
    if isinstance(panel, Curve):
        return [1.6]
    return [2.4 if panel.is_time else 0.5 + _BAR * len(panel.labels)]


def _text(text: str) -> str:
    """Escapes a string so that matplotlib does not interpret it as a formula."""
    return text.replace("$", r"\$")


def _label(text: str, longest: int = _LONGEST) -> str:
    return _text(text if len(text) <= longest else f"{text[: longest - 1]}…")


def _plain(axes: "Axes", title: str) -> None:
    axes.set_title(_text(title), loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


def _amounts(axes: "Axes", top: float, unit: Unit) -> None:
    """Labels the vertical axis with whole numbers, or with sizes that are powers of two."""
    tickers: Any = required("matplotlib.ticker", "deltalog.plot", INSTALL)
    if unit == "bytes":
        axes.yaxis.set_major_locator(tickers.MultipleLocator(byte_step(top)))
    else:
        axes.yaxis.set_major_locator(tickers.MaxNLocator(4, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_formatter(lambda value, _: amount(value, unit))
    axes.grid(axis="y", alpha=0.4)


def _bars(axes: "Axes", panel: Bars) -> None:
    """Draws horizontal bars, the first one on top."""
    places = range(len(panel.labels))
    bars = None
    left = [0.0] * len(panel.labels)
    for (name, lengths), color in zip(panel.parts.items(), COLORS, strict=False):
        bars = axes.barh(places, lengths, left=left, height=0.7, color=color, label=_text(name))
        left = [one + other for one, other in zip(left, lengths, strict=True)]
    if bars is not None:
        axes.bar_label(bars, [_text(note) for note in panel.notes], padding=4, fontsize="small")
    axes.set_yticks(places, [_label(label) for label in panel.labels])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(panel.labels) - 0.4, -0.6)
    axes.set_xlim(0, (max(left) or 1) * 1.25)
    axes.set_xticks([])
    _plain(axes, panel.title)
    axes.spines["bottom"].set_visible(False)


def _columns(axes: "Axes", panel: Bars) -> None:
    """Draws vertical bars, one for each period."""
    places = range(len(panel.labels))
    bottom = [0.0] * len(panel.labels)
    for (name, lengths), color in zip(panel.parts.items(), COLORS, strict=False):
        axes.bar(places, lengths, bottom=bottom, width=0.8, color=color, label=_label(name, _LONGEST_NAME))
        bottom = [one + other for one, other in zip(bottom, lengths, strict=True)]
    step = -(-len(panel.labels) // _MOST_TICKS)
    shown = list(places)[::step]
    axes.set_xticks(shown, [_label(panel.labels[at]) for at in shown], rotation=30, ha="right")
    axes.set_xlim(-0.6, max(len(panel.labels), 4) - 0.4)
    axes.set_ylim(0, (max(bottom) or 1) * 1.1)
    _amounts(axes, max(bottom), panel.unit)
    _plain(axes, panel.title)
    if len(panel.parts) > 1:
        axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))


def _curve(axes: "Axes", panel: Curve) -> None:
    known = [(x, float("nan") if y is None else y) for x, y in zip(panel.xs, panel.ys, strict=True)]
    xs, ys = [x for x, _ in known], [y for _, y in known]
    axes.step(
        xs, ys, where="post", color=COLORS[0], linewidth=2, marker="o" if len(xs) < 30 else None, markersize=4
    )
    axes.fill_between(xs, ys, step="post", color=COLORS[0], alpha=0.2)
    top = max((y for y in ys if y == y), default=0)
    axes.set_ylim(0, (top or 1) * 1.15)
    axes.set_xlim(xs[0] - 0.5, xs[-1] + 0.5)
    axes.locator_params(axis="x", integer=True)
    _amounts(axes, top, panel.unit)
    axes.set_xlabel(panel.x_title)
    _plain(
        axes,
        panel.title if top else f"{panel.title}: {'unknown' if not known or ys[-1] != ys[-1] else 'none'}",
    )


def _lines(above: "Axes", below: "Axes", panel: Lines) -> None:
    """Draws a line for each file, and below the lines how many files cover each place of the axis."""
    low, high = panel.parts[0][0], panel.parts[-1][1]
    least = (high - low) / 300 or 0.005
    for_each = list(enumerate(panel.lines))
    above.hlines(
        [at for at, _ in for_each],
        [start for _, (start, _) in for_each],
        [max(end, start + least) for _, (start, end) in for_each],
        color=COLORS[0],
        linewidth=min(max(150 / len(for_each), 0.6), 4) if for_each else 1,
    )
    above.set_ylim(len(for_each) - 0.5, -0.5)
    above.set_yticks([])
    above.tick_params(axis="x", labelbottom=False)
    _plain(above, panel.title)
    above.spines["left"].set_visible(False)
    edges = [low, *(end for _, end, _ in panel.parts)]
    below.stairs(
        [count for _, _, count in panel.parts],
        edges if high > low else [low - 0.5, low + 0.5],
        fill=True,
        color=COLORS[1],
    )
    below.set_ylim(0, panel.most * 1.02)
    margin = (high - low) * 0.01 or 1.0
    below.set_xlim(low - margin, high + margin + least)
    below.set_xticks([at for at, _ in panel.ticks], [_label(label) for _, label in panel.ticks])
    labels = below.get_xticklabels()
    if len(labels) > 1:
        labels[0].set_horizontalalignment("left")
        labels[-1].set_horizontalalignment("right")
    _amounts(below, panel.most, "count")
    _plain(below, panel.parts_title)
