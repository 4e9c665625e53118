"""Reads tables of names from Rust source code, and writes tables in Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["Entry", "constant", "entries", "markdown", "wrapped"]

_COMMENT = re.compile(r"^ +// (.*)$")
_ENTRY = re.compile(r'^ +\(?("[^"]+"|[A-Z_]+)(?:, (.*?)\))?,$')
_DEFAULT = re.compile(r"\s*Default: (.+)\.$")


class Entry(NamedTuple):
    """An entry of a table in the code: a name with the comment above it."""

    name: str
    value: str
    """The code that follows the name in the entry."""
    about: str
    default: str


def entries(text: str, start: str) -> Iterator[Entry]:
    """Yields the entries of the array that begins with `start`.

    Raises:
        ValueError: there is no such array, or an entry has no comment.
    """
    begin = text.find(start)
    if begin < 0:
        raise ValueError(f"the code has no {start!r}")
    about: list[str] = []
    for line in text[begin : text.index("];", begin)].splitlines()[1:]:
        if comment := _COMMENT.match(line):
            about.append(comment[1])
        elif entry := _ENTRY.match(line):
            if not about:
                raise ValueError(f"{entry[1]} in {start!r} has no comment")
            words = " ".join(about)
            default = _DEFAULT.search(words)
            yield Entry(
                entry[1].strip('"') if entry[1].startswith('"') else constant(text, entry[1]),
                entry[2] or "",
                _DEFAULT.sub("", words),
                default[1] if default else "",
            )
            about = []
        else:
            raise ValueError(f"{line.strip()!r} in {start!r} is not understood")


def constant(text: str, name: str) -> str:
    """Returns the value of the string constant with this name.

    Raises:
        ValueError: the code has no such constant.
    """
    found = re.search(rf'const {name}: &str = "([^"]+)";', text)
    if found is None:
        raise ValueError(f"the code has no constant {name}")
    return found[1]


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown, with a blank line after it."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines) + "\n"


def wrapped(text: str) -> str:
    """Breaks the lines of a paragraph."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
