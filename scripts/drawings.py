"""Draws the pictures of docs/how-it-works.md: `python -m scripts.drawings`. `--check` fails if one is not up to date.

The colors of a picture can be read on a white and on a black background: boxes are filled, and words outside of boxes
are gray.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

__all__ = ["PICTURES", "drawings", "graph"]

PICTURES = Path("docs/pictures")
GRAY = "#79828c"
FILLS = {
    "log": ("#3949ab", "#ffffff"),
    "data": ("#2e7d32", "#ffffff"),
    "old": ("#78909c", "#ffffff"),
    "lost": ("#c62828", "#ffffff"),
    "mark": ("#f9a825", "#000000"),
}
"""The colors of each kind of box: for the box itself, and for the words in it."""


class Drawing:
    """A picture to which boxes, words and arrows are added."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="14">\n'
            f"<title>{escape(title)}</title>\n"
            f'<defs><marker id="end" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 10 5 0 10z" fill="{GRAY}"/></marker></defs>\n'
        )
        self._parts: list[str] = []

    def box(self, x: int, y: int, width: int, words: str, kind: str, *, height: int = 30) -> None:
        fill, ink = FILLS[kind]
        self._parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}"/>')
        self._parts.append(
            f'<text x="{x + width // 2}" y="{y + height // 2 + 5}" text-anchor="middle" fill="{ink}">'
            f"{escape(words)}</text>"
        )

    def words(self, x: int, y: int, words: str, *, anchor: str = "start", bold: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{GRAY}"{weight}>{escape(words)}</text>'
        )

    def arrow(self, *points: tuple[int, int], dashed: bool = False) -> None:
        path = " ".join(f"{x},{y}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{GRAY}" stroke-width="1.6"{dash} marker-end="url(#end)"/>'
        )

    def line(self, x1: int, y1: int, x2: int, y2: int) -> None:
        self._parts.append(f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{GRAY}" stroke-width="1.6"/>')

    def svg(self) -> str:
        return self._head + "\n".join(self._parts) + "\n</svg>\n"


def log() -> Drawing:
    """Three commits, and the files that belong to the newest version."""
    drawing = Drawing(700, 280, "Three commits of a log, and the data files that they add and remove")
    drawing.words(20, 24, "_delta_log", bold=True)
    commits = (
        (20, "00000000.json", ("add a.parquet", "add b.parquet")),
        (250, "00000001.json", ("add c.parquet",)),
        (480, "00000002.json", ("remove b.parquet", "add d.parquet")),
    )
    for x, name, actions in commits:
        drawing.box(x, 38, 200, name, "log")
        for number, action in enumerate(actions):
            drawing.words(x + 14, 92 + 22 * number, action)
    drawing.line(20, 138, 680, 138)
    drawing.words(20, 168, "data files", bold=True)
    files = (
        (20, "a.parquet", "data"),
        (190, "b.parquet", "old"),
        (360, "c.parquet", "data"),
        (530, "d.parquet", "data"),
    )
    for x, name, kind in files:
        drawing.box(x, 182, 150, name, kind)
    drawing.words(
        20, 244, "Version 2 has the rows of a, c and d. Version 1 has a, b and c: b stays until a VACUUM."
    )
    drawing.words(20, 266, "A reader that began with version 1 is not disturbed.")
    return drawing


def checkpoint() -> Drawing:
    """A checkpoint, which contains the state after all commits up to its version."""
    drawing = Drawing(700, 250, "A reader opens the newest checkpoint and the commits after it")
    for number, x in enumerate(range(20, 20 + 4 * 78, 78)):
        drawing.box(x, 40, 66, f"{number}.json" if number < 3 else "…", "old")
    drawing.box(332, 40, 78, "10.json", "old")
    drawing.box(422, 40, 78, "11.json", "log")
    drawing.box(512, 40, 78, "12.json", "log")
    drawing.box(240, 100, 170, "10.checkpoint.parquet", "mark", height=34)
    drawing.arrow((53, 70), (53, 117), (238, 117))
    drawing.words(66, 106, "the state after 0 to 10")
    drawing.words(20, 24, "commits, oldest first", bold=True)
    drawing.box(422, 176, 168, "version 12", "data", height=34)
    drawing.arrow((325, 134), (325, 193), (420, 193))
    drawing.arrow((461, 70), (461, 174))
    drawing.arrow((551, 70), (551, 174))
    drawing.words(
        20, 232, "To open version 12: one listing, one checkpoint, two commits. The gray ones are not read."
    )
    return drawing


def vectors() -> Drawing:
    """What an UPDATE writes with a deletion vector."""
    drawing = Drawing(700, 270, "An UPDATE of one row, with a deletion vector")
    drawing.words(20, 24, "a.parquet", bold=True)
    rows = ("0  Oslo   4.5", "1  Rome  12.0", "2  Bern   3.0", "3  Kyiv   6.0")
    for number, row in enumerate(rows):
        drawing.box(20, 36 + 36 * number, 170, row, "lost" if number == 1 else "data")
    drawing.words(270, 24, "deletion vector of a", bold=True)
    drawing.box(270, 72, 150, "position 1", "mark")
    drawing.arrow((268, 87), (194, 87))
    drawing.words(500, 24, "e.parquet", bold=True)
    drawing.box(500, 36, 170, "0  Rome  24.0", "data")
    drawing.words(270, 144, "UPDATE … SET km = km * 2 WHERE city = 'Rome'")
    drawing.words(270, 166, "writes the vector, one new row, and a commit:")
    drawing.box(270, 178, 400, "remove a  ·  add a with its vector  ·  add e", "log")
    drawing.words(
        20, 232, "Readers leave out position 1. The file a is not written again, however large it is."
    )
    drawing.words(20, 254, "OPTIMIZE and REORG … APPLY (PURGE) write files without such rows.")
    return drawing


def conflicts() -> Drawing:
    """Two writers that commit after reading the same version."""
    drawing = Drawing(700, 330, "Two writers commit at the same time")
    drawing.words(20, 58, "writer A", bold=True)
    drawing.words(20, 198, "writer B", bold=True)
    drawing.words(20, 128, "the log", bold=True)
    for x, name in ((110, "5.json"), (330, "6.json"), (560, "7.json")):
        drawing.box(x, 108, 90, name, "log")
    drawing.box(130, 38, 140, "reads, writes", "data")
    drawing.box(130, 178, 220, "reads, writes more", "data")
    drawing.arrow((155, 106), (155, 70))
    drawing.arrow((155, 138), (155, 176))
    drawing.arrow((272, 53), (375, 53), (375, 106))
    drawing.words(290, 42, "creates 6.json")
    drawing.arrow((375, 176), (375, 140), dashed=True)
    drawing.words(386, 162, "6 is there")
    drawing.box(390, 178, 130, "looks at 6", "mark")
    drawing.arrow((352, 193), (388, 193))
    drawing.arrow((522, 193), (605, 193), (605, 140))
    drawing.words(520, 226, "no conflict: 7.json")
    drawing.box(390, 244, 130, "conflict", "lost")
    drawing.arrow((455, 208), (455, 242))
    drawing.words(530, 264, "nothing is committed")
    drawing.words(20, 310, "The store lets only one of them create 6.json. No lock is needed.")
    return drawing


def graph(text: str) -> Drawing:
    """Draws the boxes and arrows of a Mermaid flowchart (`a --> b`), with each box above the boxes that its arrows
    lead to.
    """
    arrows = re.findall(r"^ *([\w/]+) --> ([\w/]+)$", text, re.MULTILINE)
    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            heights[name] = 1 + max((height(below) for above, below in arrows if above == name), default=-1)
        return heights[name]

    for above, below in arrows:
        height(above)
        height(below)
    ends = {below for _, below in arrows} - {above for above, _ in arrows}
    for name in ends:
        heights[name] = min(heights[above] for above, below in arrows if below == name) - 1
    top = max(heights.values())
    drawing = Drawing(700, 64 * top + 50, "What imports what")
    places = {}
    for level in range(top + 1):
        row = [name for name in heights if heights[name] == level]
        for number, name in enumerate(row):
            places[name] = (700 * (2 * number + 1) // (2 * len(row)), 10 + 64 * (top - level))
    for above, below in arrows:
        (x1, y1), (x2, y2) = places[above], places[below]
        drawing.arrow((x1, y1 + 30), (x2, y2 - 2))
    for name, (x, y) in places.items():
        drawing.box(x - 60, y, 120, name, "log")
    return drawing


def drawings() -> dict[str, str]:
    """Returns the pictures by their file names."""
    made = {"log": log, "checkpoint": checkpoint, "vectors": vectors, "conflicts": conflicts}
    return {f"{name}.svg": draw().svg() for name, draw in made.items()}


def main() -> None:
    for name, picture in drawings().items():
        file = Path.cwd() / PICTURES / name
        if "--check" not in sys.argv:
            file.parent.mkdir(exist_ok=True)
            file.write_text(picture, "utf-8")
        elif file.read_text("utf-8") != picture:
            sys.exit(f"{PICTURES / name} is not up to date: run python -m scripts.drawings")


if __name__ == "__main__":
    main()
