"""The symbols of others to which Java classes refer, as `LinkCheck` reads them."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable

# Tags of the constants in a class file (The Java Virtual Machine Specification, 4.4), and the sizes of their contents.
_TEXT, _CLASS, _FIELD, _METHOD, _INTERFACE_METHOD, _NAME_AND_TYPE = 1, 7, 9, 10, 11, 12
_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    _CLASS: 2,
    8: 2,
    _FIELD: 4,
    _METHOD: 4,
    _INTERFACE_METHOD: 4,
    _NAME_AND_TYPE: 4,
}
_SIZES |= {15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_TAKES_TWO_PLACES = (5, 6)

_KINDS = {_METHOD: "class", _INTERFACE_METHOD: "interface"}


def _constants(content: bytes) -> dict[int, tuple[int, bytes]]:
    """Returns the constants of a class file by their numbers: tag and content."""
    [count] = struct.unpack_from(">H", content, 8)
    at, number, found = 10, 1, {}
    while number < count:
        tag = content[at]
        start = at + 3 if tag == _TEXT else at + 1
        at = start + (struct.unpack_from(">H", content, at + 1)[0] if tag == _TEXT else _SIZES[tag])
        found[number] = (tag, content[start:at])
        number += 2 if tag in _TAKES_TWO_PLACES else 1
    return found


def symbols(classes: Iterable[bytes], own: str) -> str:
    """Returns the list of all symbols that are neither Java's nor of the package `own`, sorted by classes."""
    kinds: dict[str, str] = {}
    members: dict[str, set[str]] = defaultdict(set)
    for content in classes:
        constants = _constants(content)

        def text(number: int, constants: dict[int, tuple[int, bytes]] = constants) -> str:
            return constants[number][1].decode()

        def name(number: int, constants: dict[int, tuple[int, bytes]] = constants) -> str:
            return text(struct.unpack(">H", constants[number][1])[0], constants).replace("/", ".")

        for tag, value in constants.values():
            if tag == _CLASS:
                kinds.setdefault(text(struct.unpack(">H", value)[0]).replace("/", "."), "type")
            elif tag in (_FIELD, _METHOD, _INTERFACE_METHOD):
                owner, described = struct.unpack(">HH", value)
                member, descriptor = map(text, struct.unpack(">HH", constants[described][1]))
                members[name(owner)].add(f"{'field' if tag == _FIELD else 'method'} {member} {descriptor}")
                if tag in _KINDS:
                    kinds[name(owner)] = _KINDS[tag]
    lines = []
    for owner in sorted(kinds):
        if not owner.startswith(("[", "java.", f"{own}.")):
            lines += [f"{kinds[owner]} {owner}", *sorted(members[owner])]
    return "".join(f"{line}\n" for line in lines)
