"""Makes the page of table features from `protocol/features`: the list of features, and the gate that says which of
them are implemented.
"""

from __future__ import annotations

import re
from pathlib import Path

from scripts.reference.tables import constant, markdown

__all__ = ["page"]

SOURCES = Path("crates/deltalog/src/protocol")
FEATURE = re.compile(
    r'((?:^    /// .*\n)+)^    (\w+) = "([^"]+)", (\w+)(?:, reader (\d))?(?:, writer (\d))?;', re.MULTILINE
)
TO_CATALOGS = "CatalogManaged"
"""The feature whose tables can be read only if their catalog has supplied the newest commits."""

START = """\
# Table features

The protocol of a table lists the features that its readers and writers must support. deltalog refuses a table with a
feature that it does not implement, even where reading might have worked; the error names the feature. A feature is
added when its property below is set, when something that needs it is defined (such as a column with a default value, or
a constraint), or by the property `'delta.feature.<name>' = 'supported'`. `ALTER TABLE … DROP FEATURE` and
`alter.drop_feature` remove it.

[What works](../support.md) has more about some of them. This page is generated from the code by `python -m
scripts.reference`.

"""


def page(root: Path) -> str:
    """Returns the page."""
    folder = root / SOURCES / "features"
    listed, gate = folder / "table_feature.rs", (folder / "gate.rs").read_text("utf-8")
    text = listed.read_text("utf-8")
    known = FEATURE.findall(text)
    if len(known) != text.count('", ReaderWriter') + text.count('", Writer'):
        raise ValueError(f"{listed} has features that this script cannot parse")
    readers, writers = (_implemented(gate, side) for side in ("reader", "writer"))
    properties = _properties(root / SOURCES)
    rows = []
    for comment, variant, name, kind, reader, writer in known:
        about = " ".join(line.strip().removeprefix("/// ") for line in comment.splitlines())
        about = re.sub(r'^"[^"]+": ', "", about)
        reads = variant in readers or kind == "Writer"
        rows.append(
            (
                f"`{name}`",
                f"{about[0].upper()}{about[1:]}",
                "readers and writers" if kind == "ReaderWriter" else "writers",
                ", ".join([f"reader {reader}"] * bool(reader) + [f"writer {writer}"] * bool(writer)),
                f"`{properties[variant]}`" if variant in properties else "",
                "with its catalog" if variant == TO_CATALOGS else "yes" if reads else "no",
                "yes" if reads and variant in writers else "no",
            )
        )
    titles = (
        "feature",
        "what it is",
        "who must support it",
        "implied by version",
        "property",
        "read",
        "write",
    )
    return (START + markdown(titles, rows)).rstrip("\n") + "\n"


def _implemented(gate: str, side: str) -> set[str]:
    """Returns the features that a function of the gate lists as implemented."""
    begin = gate.index(f"fn {side}_support")
    body = re.sub(r"//.*", "", gate[begin : gate.index("\n}\n", begin)])
    if not body.rstrip().endswith("_ => Support::Missing,\n    }"):
        raise ValueError(f"{side}_support in the gate cannot be parsed by this script")
    return set(re.findall(r"TableFeature::(\w+)", body))


def _properties(sources: Path) -> dict[str, str]:
    """Returns the properties that turn on features."""
    listed = (sources / "features" / "table_feature.rs").read_text("utf-8")
    new = (sources / "features" / "new_table.rs").read_text("utf-8")
    names = (sources / "properties.rs").read_text("utf-8")
    found = dict(re.findall(r'Self::(\w+) => Ok\(metadata\.is_enabled\("([^"]+)"\)\)', listed))
    for name, variant in re.findall(r'\(("[^"]+"|[A-Z_]+), TableFeature::(\w+)\)', new):
        found[variant] = name.strip('"') if name.startswith('"') else constant(names, name)
    found |= {
        "ChangeDataFeed": "delta.enableChangeDataFeed",
        "ColumnMapping": "delta.columnMapping.mode",
        "V2Checkpoint": "delta.checkpointPolicy",
    }
    return found
