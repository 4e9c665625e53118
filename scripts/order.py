"""Finds imports that violate an order in which each part may import only from itself and from the parts before it.

Three scripts use it: `floors.py` for the folders of the core, `rooms.py` for the folders of `python/deltalog/spark`,
and `java_rooms.py` for the folders of its Java sources. Each script finds the references in the language that it
checks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Import:
    """A name in the code of one part that belongs to another part."""

    place: str
    """The file, and the line if it is known."""
    text: str
    """The name of the imported item, as written in the code."""
    importer: str
    imported: str | None
    """The part that is imported from; None if the code does not tell."""

    def __str__(self) -> str:
        return f"{self.place}: `{self.text}`"


def upward(order: Collection[str], found: Iterable[Import]) -> Iterator[str]:
    """Yields a message for each import from a part that comes later in the order, and for each import whose part is
    unknown.
    """
    position = {name: at for at, name in enumerate(order)}
    for each in found:
        if each.imported not in position:
            yield f"{each} belongs to no part of the order"
        elif position[each.imported] > position[each.importer]:
            yield f"{each} belongs to {each.imported}, but {each.importer} must not use {each.imported}"


def circles(edges: Mapping[tuple[str, str], Import]) -> list[str]:
    """Returns a message for each import that is part of an import cycle. `edges` maps each pair of parts (importer,
    imported) to one import.
    """
    below: dict[str, set[str]] = {}
    for _ in edges:
        for importer, imported in edges:
            below.setdefault(importer, {imported}).update({imported}, below.get(imported, ()))
    return [
        f"{each} makes {a} and {b} depend on each other"
        for (a, b), each in edges.items()
        if a in below.get(b, ())
    ]
