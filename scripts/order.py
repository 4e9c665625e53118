"""Finds imports that violate an order in which each part may import only from itself and from the parts before it.

Three scripts use it: `floors.py` for the folders of the core, `rooms.py` for the folders of `python/deltalog/spark`,
and `java_rooms.py` for the folders of its Java sources. Each finds the references between parts in its own language.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Import:
    """A name in the code of one part that belongs to another part."""

    place: str
    """The file, and the line if it is known."""
    text: str
    """What is named, as the code has it."""
    importer: str
    imported: str | None
    """None if the code does not say which part it imports from."""

    def __str__(self) -> str:
        return f"{self.place}: `{self.text}`"


def upward(order: Collection[str], found: Iterable[Import]) -> Iterator[str]:
    """Yields a message for each import that goes up, or does not say where it goes."""
    position = {name: at for at, name in enumerate(order)}
    for each in found:
        if each.imported not in position:
            yield f"{each} names no part of the order"
        elif position[each.imported] > position[each.importer]:
            yield f"{each} goes up from {each.importer} to {each.imported}"


def circles(edges: Mapping[tuple[str, str], Import]) -> list[str]:
    """Returns a message for each import that closes a circle. `edges` has one import for each pair of parts."""
    below: dict[str, set[str]] = {}
    for _ in edges:
        for importer, imported in edges:
            below.setdefault(importer, {imported}).update({imported}, below.get(imported, ()))
    return [
        f"{each} closes a circle of {a} and {b}" for (a, b), each in edges.items() if a in below.get(b, ())
    ]
