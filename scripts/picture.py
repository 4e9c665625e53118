"""Draws the floors of the core in ARCHITECTURE.md from the imports of the code.

`--check` fails if the floors or imports in the picture differ from the code. The numbers of lines may be outdated.
"""

import re
import sys
from collections import Counter

from scripts.floors import FLOORS, SOURCES, floor_of, imports

TEXT = SOURCES.parent.parent.parent / "ARCHITECTURE.md"
SIZE = re.compile(r"\| [0-9,]+ \|")
BEGIN, END = "<!-- floors: made by `make picture` -->\n", "<!-- end of the floors -->\n"


def lines() -> Counter[str]:
    """Returns how many lines each floor has, including its tests."""
    counts: Counter[str] = Counter()
    for source in SOURCES.rglob("*.rs"):
        if floor := floor_of(source.relative_to(SOURCES).as_posix()):
            counts[floor] += source.read_text("utf-8").count("\n")
    return counts


def below() -> dict[str, set[str]]:
    """Returns, for each floor, the floors from which it imports."""
    found: dict[str, set[str]] = {floor: set() for floor in FLOORS}
    for each in imports():
        if each.imported is not None and each.imported != each.importer:
            found[each.importer].add(each.imported)
    return found


def picture() -> str:
    """Returns the floors as a graph and as a table, the highest floor first.

    The graph has only the arrows that are not implied by other arrows.
    """
    counts, floors = lines(), below()
    name = {floor: floor.removeprefix("operations/") for floor in FLOORS}
    inner = [f"    {name[floor]}" for floor in reversed(FLOORS) if name[floor] != floor]
    graph = ["```mermaid", "flowchart TD", "  subgraph operations", *inner, "  end"]
    table = ["| floor | lines | what it is |", "| --- | --- | --- |"]
    reached: dict[str, set[str]] = {}
    for floor in FLOORS:
        reached[floor] = floors[floor].union(*(reached[other] for other in floors[floor]))
    for floor in reversed(FLOORS):
        for other in reversed(FLOORS):
            if other in floors[floor] and not any(other in reached[via] for via in floors[floor]):
                graph.append(f"  {name[floor]} --> {name[other]}")
        table.append(f"| `{floor}` | {counts[floor]:,} | {FLOORS[floor]} |")
    return "\n".join([*graph, "```", "", *table, ""])


def main() -> None:
    text = TEXT.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    drawn = f"{before}{BEGIN}\n{picture()}\n{END}{after}"
    if "--check" not in sys.argv:
        TEXT.write_text(drawn, "utf-8")
    elif SIZE.sub("", drawn) != SIZE.sub("", text):
        sys.exit("ARCHITECTURE.md does not show the floors of the code: run `make picture`")


if __name__ == "__main__":
    main()
