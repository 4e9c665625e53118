"""Draws the result of the pipeline, with the commits and changes that led to it below."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from demo import silver

AIRPORTS = {"EWR": ("Newark", "#c1432b"), "JFK": ("Kennedy", "#1f5f8b"), "LGA": ("LaGuardia", "#6a8f3c")}
WRITERS = {"Spark": "#1f5f8b", "second writer": "#e08e2b"}
CHANGES = {"inserted": "#6a8f3c", "updated": "#1f5f8b", "deleted": "#c1432b"}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Commit:
    """One commit of a table: the number of rows that it added, and its writer."""

    version: int
    rows: int
    writer: str


def delays(axes: Axes, points: list[tuple[int, str, float]]) -> None:
    """Draws the mean departure delay by month, one labelled line per airport."""
    ends = {}
    for code, (name, colour) in AIRPORTS.items():
        line = sorted((month, delay) for month, origin, delay in points if origin == code)
        axes.plot(
            [month for month, _ in line],
            [delay for _, delay in line],
            color=colour,
            linewidth=2,
            marker="o",
            markersize=4,
        )
        ends[name] = (line[-1], colour)
    height = None
    for name, ((month, delay), colour) in sorted(ends.items(), key=lambda end: end[1][0][1]):
        height = delay if height is None else max(delay, height + 1.6)  # Keeps names from overlapping.
        axes.annotate(
            name, (month, delay), xytext=(month + 0.2, height), color=colour, va="center", fontweight="bold"
        )
    axes.set_xticks(range(1, 13), MONTHS)
    axes.set_xlim(0.6, 13.6)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("minutes")
    axes.set_title("Mean departure delay by airport, New York City 2013", loc="left", fontweight="bold")


def commits(axes: Axes, history: list[Commit]) -> None:
    """Draws the number of rows that each commit added. The colour of a bar shows the writer."""
    bars = axes.bar(
        [commit.version for commit in history],
        [commit.rows for commit in history],
        color=[WRITERS[commit.writer] for commit in history],
    )
    for bar, commit in zip(bars, history, strict=True):
        axes.annotate(
            f"{commit.rows:,}",
            (bar.get_x() + bar.get_width() / 2, commit.rows),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            color=WRITERS[commit.writer],
            fontweight="bold",
        )
    axes.set_xticks([commit.version for commit in history])
    axes.set_xlabel("version of the bronze table")
    axes.set_yticks([])  # Every bar has its number.
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.02, y=0.12)
    axes.set_title("Rows that each commit added", loc="left", fontweight="bold")
    present = [writer for writer in WRITERS if any(commit.writer == writer for commit in history)]
    axes.legend(
        handles=[Patch(color=WRITERS[writer], label=writer) for writer in present],
        frameon=False,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=2,
    )


def changes(axes: Axes, changed: list[silver.Changes]) -> None:
    """Draws the numbers of rows that each statement inserted, updated and deleted, according to the change data
    feed.
    """
    ticks, names = [], []
    place = 0.0
    for version in reversed(changed):
        begin = place
        for kind, count in reversed(version.rows.items()):
            bar = axes.barh(place, count, color=CHANGES[kind], height=0.8)
            axes.bar_label(
                bar,
                labels=[f"{count:,} {kind}"],
                padding=4,
                color=CHANGES[kind],
                fontweight="bold",
                fontsize=9,
            )
            place += 1
        ticks.append((begin + place - 1) / 2)
        names.append(f"version {version.version}\n{version.statement}")
        place += 0.6
    axes.set_yticks(ticks, names)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([])  # Every bar has its number.
    axes.spines["bottom"].set_visible(False)
    axes.margins(x=0.25)
    axes.set_title(
        "Rows of silver that each statement changed, from the change data feed", loc="left", fontweight="bold"
    )


@dataclass(frozen=True)
class Skipping:
    """The shares of the files that a filter skips, before and after the rows were ordered."""

    predicate: str
    before: float
    after: float


def draw_skipping(skipping: list[Skipping], target: Path) -> None:
    """Writes a picture of the files that filters skip to `target`, a PNG."""
    figure, axes = plt.subplots(figsize=(9, 0.8 + 0.9 * len(skipping)), layout="constrained")
    for place, filter_ in enumerate(reversed(skipping)):
        for share, offset, colour, when in (
            (filter_.before, 0.18, "#bbbbbb", "before"),
            (filter_.after, -0.18, "#1f5f8b", "after"),
        ):
            bar = axes.barh(place + offset, share, height=0.34, color=colour)
            label = f"{share:.0%} {when}"
            axes.bar_label(bar, labels=[label], padding=4, color="#555555", fontsize=9, fontweight="bold")
    axes.set_yticks(range(len(skipping)), [filter_.predicate for filter_ in reversed(skipping)])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.15)
    axes.set_xticks([])  # Every bar has its number.
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title(
        "Files of silver that a filter skips, before and after its rows were ordered",
        loc="left",
        fontweight="bold",
    )
    figure.savefig(target, dpi=150)
    plt.close(figure)


def draw(
    points: list[tuple[int, str, float]], history: list[Commit], changed: list[silver.Changes], target: Path
) -> None:
    """Writes the picture to `target`, a PNG."""
    figure, (top, middle, bottom) = plt.subplots(
        3, 1, figsize=(9, 10), height_ratios=(3, 2, 1.4), layout="constrained"
    )
    delays(top, points)
    commits(middle, history)
    changes(bottom, changed)
    for axes in (top, middle, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
    bottom.grid(visible=False)
    figure.savefig(target, dpi=150)
    plt.close(figure)
