"""Lists the symbols of other packages that our Java classes use, by groups of features. `LinkCheck` reads the list."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scripts.feature_groups import ENTRIES, READ, USES, grouped

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


@dataclass
class Class:
    """The references in a class file.

    `kinds` has the classes that it uses, each with its kind ("type" if the file does not tell more). `members` has the
    used members of these classes, `supers` the types that it extends and implements, and `own` the classes of its own
    package that it uses, including types of parameters.
    """

    name: str
    kinds: dict[str, str] = field(default_factory=dict)
    members: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    supers: list[str] = field(default_factory=list)
    own: set[str] = field(default_factory=set)


def constants(content: bytes) -> tuple[dict[int, tuple[int, bytes]], int]:
    """Returns the constant pool of a class file (each constant's tag and content, by its number), and the position
    after it.
    """
    [count] = struct.unpack_from(">H", content, 8)
    at, number, found = 10, 1, {}
    while number < count:
        tag = content[at]
        start = at + 3 if tag == _TEXT else at + 1
        at = start + (struct.unpack_from(">H", content, at + 1)[0] if tag == _TEXT else _SIZES[tag])
        found[number] = (tag, content[start:at])
        number += 2 if tag in _TAKES_TWO_PLACES else 1
    return found, at


def read(content: bytes, own: str) -> Class:
    """Reads the references in a class file that belongs to the package `own`."""
    pool, at = constants(content)

    def text(number: int) -> str:
        return pool[number][1].decode()

    def name(number: int) -> str:
        return text(struct.unpack(">H", pool[number][1])[0]).replace("/", ".")

    _, this, above, count = struct.unpack_from(">4H", content, at)
    interfaces = struct.unpack_from(f">{count}H", content, at + 8)
    found = Class(name(this), supers=[name(number) for number in (above, *interfaces)])
    in_types = re.compile(rf"(?:^|L){re.escape(own.replace('.', '/'))}/([\w$]+)(?:;|$)")
    for tag, value in pool.values():
        if tag == _CLASS:
            found.kinds.setdefault(text(struct.unpack(">H", value)[0]).replace("/", "."), "type")
        elif tag == _TEXT:
            found.own.update(in_types.findall(value.decode(errors="replace")))
        elif tag in (_FIELD, _METHOD, _INTERFACE_METHOD):
            owner, described = struct.unpack(">HH", value)
            member, descriptor = map(text, struct.unpack(">HH", pool[described][1]))
            found.members[name(owner)].add(f"{'field' if tag == _FIELD else 'method'} {member} {descriptor}")
            if tag in _KINDS:
                found.kinds[name(owner)] = _KINDS[tag]
    return found


def symbols(
    contents: Iterable[bytes],
    own: str,
    entries: Mapping[str, Iterable[str]] = ENTRIES,
    uses: Mapping[str, Iterable[str]] = USES,
) -> str:
    """Returns the list of all used symbols, apart from symbols of Java and of the package `own`.

    It has a section for each group of features, with the classes of the group and the symbols that the group needs but
    the first group does not. The first group's section also has the types that the entries of other groups extend,
    because the JVM loads these types together with the classes of the first group.
    """
    classes = [read(content, own) for content in contents]
    by_outer: dict[str, list[Class]] = defaultdict(list)
    for found in classes:
        by_outer[_outer(found.name.removeprefix(f"{own}."))].append(found)
    references = {
        outer: {_outer(name) for each in inner for name in each.own} for outer, inner in by_outer.items()
    }
    groups = grouped(references, entries, uses)
    lines: list[str] = []
    known: set[str] = set()
    for group, outers in groups.items():
        needed = [each for outer in sorted(outers) for each in by_outer[outer]]
        needed += _entries(by_outer, own, entries) if group == READ else []
        names = sorted(each.name for outer in outers for each in by_outer[outer])
        lines += [f"group {group}", *(f"own {name}" for name in names)]
        found_lines = _symbols(needed, own, known)
        lines += found_lines
        if group == READ:
            known = _pairs(found_lines)
    return "".join(f"{line}\n" for line in lines)


def _outer(name: str) -> str:
    return name.split("$")[0]


def _entries(
    by_outer: Mapping[str, list[Class]], own: str, entries: Mapping[str, Iterable[str]]
) -> list[Class]:
    """Returns one `Class` for each entry of the groups after the first, and for each of their supertypes in our
    package. It refers only to the types that the entry or supertype extends and implements.
    """
    waiting = [f"{own}.{name}" for group, names in entries.items() if group != READ for name in names]
    known = {each.name: each for inner in by_outer.values() for each in inner}
    found: dict[str, Class] = {}
    while waiting:
        each = known.get(waiting.pop())
        if each is not None and each.name not in found:
            found[each.name] = Class(each.name, kinds=dict.fromkeys(each.supers, "type"))
            waiting += each.supers
    return list(found.values())


def _symbols(classes: Iterable[Class], own: str, known: set[str]) -> list[str]:
    """Returns the lines of a section for the references of classes, leaving out symbols that an earlier section has."""
    kinds: dict[str, str] = {}
    members: dict[str, set[str]] = defaultdict(set)
    for each in classes:
        for name, kind in each.kinds.items():
            if kind != "type" or name not in kinds:
                kinds[name] = kind
        for name, described in each.members.items():
            members[name] |= described
    lines = []
    for owner in sorted(kinds):
        if not owner.startswith(("[", "java.", f"{own}.")):
            new = [member for member in sorted(members[owner]) if f"{owner} {member}" not in known]
            if new or owner not in known:
                lines += [f"{kinds[owner]} {owner}", *new]
    return lines


def _pairs(lines: Iterable[str]) -> set[str]:
    """Returns the names of the classes in a section, and each member's line with the name of its class before it."""
    pairs, owner = set(), ""
    for line in lines:
        kind, name = line.split(" ", 1)
        if kind in ("field", "method"):
            pairs.add(f"{owner} {line}")
        else:
            owner = name
            pairs.add(owner)
    return pairs
