"""Draws plots with altair."""

import json
from typing import TYPE_CHECKING, Any

from deltalog.extras import required
from deltalog.plot.figure import COLORS
from deltalog.plot.picture import Bars, Curve, Lines, Panel, Picture, Unit, amount, byte_step

if TYPE_CHECKING:
    import altair

__all__ = ["INSTALL", "chart_of"]

INSTALL = "pip install 'deltalog[altair]'"

_WIDTH = 600


def chart_of(picture: Picture) -> "altair.VConcatChart":
    """Returns a plot as an altair chart."""
    alt: Any = required("altair", "deltalog.plot", INSTALL)
    charts = [chart for panel in picture.panels for chart in _charts(alt, panel)]
    title = alt.TitleParams(picture.title, subtitle=picture.summary, anchor="start")
    if not charts:
        empty = alt.Chart(alt.InlineData(values=[{}])).mark_text().properties(width=_WIDTH, height=1)
        return alt.vconcat(empty, title=title)
    return alt.vconcat(*charts, title=title).resolve_scale(color="independent")


def _charts(alt: Any, panel: Panel) -> list[Any]:
    if isinstance(panel, Bars):
        return [_bars(alt, panel)]
    return [_curve(alt, panel)] if isinstance(panel, Curve) else _lines(alt, panel)


def _data(alt: Any, values: list[dict[str, Any]]) -> Any:
    return alt.InlineData(values=values)


def _bars(alt: Any, panel: Bars) -> Any:
    values = [
        {"place": at, "label": label, "part": name, "value": length, "note": note}
        for name, lengths in panel.parts.items()
        for at, (label, length, note) in enumerate(zip(panel.labels, lengths, panel.notes, strict=True))
    ]
    names = list(panel.parts)
    color = alt.Color(
        "part:N",
        title=None,
        scale=alt.Scale(domain=names, range=list(COLORS[: len(names)])),
        legend=alt.Legend() if len(names) > 1 else None,
    )
    label = alt.EncodingSortField("place", op="min", order="ascending")
    length_axis = _axis(alt, max(map(sum, zip(*panel.parts.values(), strict=True)), default=0), panel.unit)
    if panel.is_time:
        places = {
            "x": alt.X("label:N", sort=label, title=None),
            "y": alt.Y("value:Q", title=None, axis=length_axis),
        }
    else:
        places = {
            "y": alt.Y("label:N", sort=label, title=None),
            "x": alt.X("value:Q", title=None, axis=length_axis),
        }
    shown = [alt.Tooltip(f"{name}:N") for name in ("label", "part", "note")] + [
        alt.Tooltip("value:Q", format=",")
    ]
    chart = alt.Chart(_data(alt, values), title=panel.title).mark_bar()
    size = {"height": 160} if panel.is_time else {}
    return chart.encode(**places, color=color, tooltip=shown).properties(width=_WIDTH, **size)


def _curve(alt: Any, panel: Curve) -> Any:
    values = [{"x": x, "y": y} for x, y in zip(panel.xs, panel.ys, strict=True)]
    chart = alt.Chart(_data(alt, values), title=panel.title)
    return (
        chart.mark_area(interpolate="step-after", line={"color": COLORS[0]}, color=COLORS[0], opacity=0.4)
        .encode(
            x=alt.X("x:Q", title=panel.x_title, axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y(
                "y:Q", title=None, axis=_axis(alt, max((y or 0 for y in panel.ys), default=0), panel.unit)
            ),
            tooltip=[
                alt.Tooltip("x:Q", title=panel.x_title),
                alt.Tooltip("y:Q", title=panel.title, format=","),
            ],
        )
        .properties(width=_WIDTH, height=120)
    )


def _lines(alt: Any, panel: Lines) -> list[Any]:
    axis = _marked(alt, panel.ticks)
    scale = alt.Scale(domain=[panel.parts[0][0], panel.parts[-1][1]], zero=False, nice=False)
    files = [{"at": at, "low": low, "high": high} for at, (low, high) in enumerate(panel.lines)]
    above = (
        alt.Chart(_data(alt, files), title=panel.title)
        .mark_bar(color=COLORS[0], minBandSize=1)
        .encode(
            x=alt.X("low:Q", title=None, axis=axis, scale=scale),
            x2="high:Q",
            y=alt.Y("at:O", title=None, axis=None),
        )
        .properties(width=_WIDTH, height=min(max(60, 4 * len(files)), 300))
    )
    counts = [
        {"low": low, "files": count, "from": label}
        for (low, _, count), label in zip(panel.parts, panel.labels, strict=True)
    ]
    counts.append({**counts[-1], "low": panel.parts[-1][1]})
    below = (
        alt.Chart(_data(alt, counts), title=panel.parts_title)
        .mark_area(interpolate="step-after", color=COLORS[1])
        .encode(
            x=alt.X("low:Q", title=None, axis=axis, scale=scale),
            y=alt.Y(
                "files:Q",
                title=None,
                axis=_axis(alt, panel.most, "count"),
                scale=alt.Scale(domain=[0, panel.most]),
            ),
            tooltip=[alt.Tooltip("from:N"), alt.Tooltip("files:Q")],
        )
        .properties(width=_WIDTH, height=140)
    )
    return [above, below]


def _axis(alt: Any, top: float, unit: Unit) -> Any:
    """Returns an axis of whole numbers, or of bytes in powers of two."""
    if unit == "count":
        return alt.Axis(format="~s", labelExpr="datum.value % 1 ? '' : datum.label", tickCount=5)
    step = byte_step(top)
    return _marked(alt, [(step * at, amount(step * at, unit)) for at in range(int(top // step) + 1)])


def _marked(alt: Any, ticks: list[tuple[float, str]]) -> Any:
    """Returns an axis with a label at each of these positions. The labels are given by a Vega expression."""
    conditions = [f"datum.value <= {at!r} ? {json.dumps(label)} : " for at, label in ticks]
    return alt.Axis(values=[at for at, _ in ticks], labelExpr=f"{''.join(conditions)}''")
