"""Makes the page of table properties from `protocol/properties.rs` and the modules that define deltalog's own
properties.
"""

from __future__ import annotations

import re
from pathlib import Path

from scripts.reference.tables import Entry, constant, entries, markdown

__all__ = ["page"]

SOURCES = Path("crates/deltalog/src")
OWN = ("write/blooms.rs", "upkeep/compaction.rs")
"""The modules that define properties of deltalog itself."""

START = """\
# Table properties

Properties are set when a table is created (`configuration=` in Python, `TBLPROPERTIES` in SQL), and changed by
`alter.set_table_properties` or `ALTER TABLE … SET TBLPROPERTIES`. A name that begins with `delta.` and is not listed
here is refused, and so is a value that the property does not allow. You can use all other names for your own
properties.

This page is generated from the code by `python -m scripts.reference`.

"""


def page(root: Path) -> str:
    """Returns the page."""
    text = "\n".join(
        (root / SOURCES / "protocol" / name).read_text("utf-8")
        for name in ("properties.rs", "checkpoint_protection.rs", "row_tracking.rs")
    )
    words = dict(re.findall(r"Self::(\w+)(?:\(\w+\))? => (?:format!\()?\"([^\"]+)\"", _description(text)))
    known = [_row(entry, text, words) for entry in entries(text, "const KNOWN:")]
    families = [
        (f"`{entry.name}<name>`", entry.about, _allowed(entry.value, text, words))
        for entry in entries(text, "const FAMILIES:")
    ]
    return (
        START
        + "## Properties of the protocol\n\n"
        + markdown(("property", "what it does", "values", "default"), known)
        + "## Families of properties\n\n"
        + markdown(("property", "what it does", "value"), families)
        + "## Properties of deltalog\n\nOther writers ignore these.\n\n"
        + markdown(("property", "what it is"), [row for name in OWN for row in _own(root / SOURCES / name)])
    ).rstrip("\n") + "\n"


def _description(text: str) -> str:
    begin = text.index("fn description(self)")
    return text[begin : text.index("\n    }\n", begin)]


def _row(entry: Entry, text: str, words: dict[str, str]) -> tuple[str, str, str, str]:
    default = f"`{entry.default}`" if entry.default else ""
    return f"`{entry.name}`", entry.about, _allowed(entry.value, text, words), default


def _allowed(kind: str, text: str, words: dict[str, str]) -> str:
    """Returns a description of the values that a property of this kind may have."""
    if kind == "SUPPORTED":
        kind = re.findall(r"const SUPPORTED: Kind = (.+);", text)[0]
    match = re.fullmatch(r"Kind::(\w+)(?:\((.+)\))?", kind)
    if match is None:
        raise ValueError(f"{kind} is no kind of values")
    name, argument = match.groups()
    if name == "OneOf":
        if argument == "CODECS":
            begin = text.index("const CODECS")
            argument = text[begin : text.index(";", begin)]
        return ", ".join(f"`{word}`" for word in re.findall(r'"([^"]+)"', argument))
    return words[name].replace("{least}", argument or "")


def _own(file: Path) -> list[tuple[str, str]]:
    """Returns the properties of a module: constants whose comment says that they are properties."""
    text, rows = file.read_text("utf-8"), []
    for comment, name in re.findall(
        r"((?:^/// .*\n)+)^(?:pub\(crate\) )?const (\w+): &str", text, re.MULTILINE
    ):
        about = " ".join(line.removeprefix("/// ") for line in comment.splitlines())
        said = re.match(r"The (?:table )?property (?:with|that lists) (.+?)(?:\. |\.?$)", about)
        if said:
            rows.append((f"`{constant(text, name)}`", f"{said[1][0].upper()}{said[1][1:]}."))
    if not rows:
        raise ValueError(f"{file} has no property")
    return rows
