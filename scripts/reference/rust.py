"""Makes the page of the crate `deltalog` from its documentation, `public-api.txt` and the comments in the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from scripts.reference.tables import wrapped

__all__ = ["CRATE", "laid_out", "page"]

CRATE = Path("crates/deltalog")
KINDS = {"struct": "Structs", "enum": "Enums", "trait": "Traits", "type": "Types", "fn": "Functions"}
WIDTH = 100

START = """\
# Rust

The crate `deltalog` is the core of the other packages. `cargo doc -p deltalog --open` shows the complete
documentation of the items on this page, including the errors of each function.

This page is made with the site, from the crate's documentation and the list of its public API.

"""


def page(root: Path) -> str:
    """Returns the page."""
    sources = root / CRATE / "src"
    about = _sentences(sources) | _exported(sources)
    items = list(_items((root / CRATE / "public-api.txt").read_text("utf-8")))
    names = {name for _, name, _ in items}
    parts = [START, _guide(root / CRATE / "src" / "lib.rs", names)]
    for kind, title in KINDS.items():
        parts.append(f"## {title}\n\n")
        for _, name, signatures in (item for item in items if item[0] == kind):
            if name not in about:
                raise ValueError(f"no comment of {kind} {name} was found")
            code = "\n".join(laid_out(signature) for signature in signatures)
            parts.append(f"### {name}\n\n{wrapped(about[name])}\n\n```rust\n{code}\n```\n\n")
    return "".join(parts).rstrip("\n") + "\n"


def _items(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yields the kind and name of each public item, and the signatures of the item and its methods."""
    for block in text.split("\n\n")[1:]:
        first, *others = block.strip().splitlines()
        head, _, signature = first.partition(": ")
        kind, _, name = head.partition(" ")
        if kind not in KINDS:
            raise ValueError(f"{head} is of an unknown kind")
        methods = [line.strip() for line in others if not line.startswith("    implements ")]
        yield kind, name, [signature, *methods]


def _guide(file: Path, names: set[str]) -> str:
    """Returns the documentation of the crate's root, with links to the items of the page."""
    lines = [
        line.removeprefix("//!").removeprefix(" ")
        for line in file.read_text("utf-8").splitlines()
        if line.startswith("//!")
    ]
    visible = [line for line in lines if not re.match(r"# (?=\S)|#$", line)]
    text = "\n".join(visible).strip() + "\n\n"
    text = text.replace("```\nuse", "```rust\nuse", 1)

    def linked(match: re.Match[str]) -> str:
        name = match[1].split("::")[0]
        return f"[`{match[1]}`](#{name.lower()})" if name in names else f"`{match[1]}`"

    return re.sub(r"\[`([\w:]+)`\](?!\()", linked, text)


def _sentences(sources: Path) -> dict[str, str]:
    """Returns the first paragraph of each public item's documentation."""
    item = re.compile(r"(?: *pub (?:struct|enum)|pub (?:trait|type|const fn|fn)) (\w+)")
    found: dict[str, str] = {}
    for file in sorted(sources.rglob("*.rs")):
        comment: list[str] = []
        is_attribute = False
        for line in file.read_text("utf-8").splitlines():
            words = line.strip()
            if words.startswith("///"):
                comment.append(words.removeprefix("///").strip())
            elif is_attribute or words.startswith("#["):
                is_attribute = not words.endswith("]")
            elif not words.startswith("//"):
                if comment and (match := item.match(line)):
                    paragraph = " ".join(comment[: comment.index("") if "" in comment else None])
                    found.setdefault(match[1], re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", paragraph))
                comment = []
    return found


def _exported(sources: Path) -> dict[str, str]:
    """Returns the first paragraph of each item that the crate re-exports, by name from a folder or under another
    name.
    """
    found = {}
    for module, names in re.findall(
        r"pub use ([\w:]+)::\{([^{}]*)\};", (sources / "lib.rs").read_text("utf-8")
    ):
        there = _sentences(sources.joinpath(*module.split("::")))
        for name, other in re.findall(r"(\w+)(?: as (\w+))?", names):
            if name in there:
                found[other or name] = there[name]
    return found


def laid_out(signature: str) -> str:
    """Returns a signature on one line, or, if it is long, with one line for each argument, field or variant."""
    opening = re.search(r"[({] (?=\S)", signature)
    if len(signature) <= WIDTH or opening is None:
        return re.sub(r"\( (?=\S)", "(", signature).replace(", )", ")")
    close = {"(": ")", "{": "}"}[opening[0][0]]
    end, parts, part, depth = len(signature), [], "", 0
    for place, letter in enumerate(signature[opening.end() :], opening.end()):
        if letter == close and depth == 0:
            end = place
            break
        depth += (letter in "([{<") - (
            letter in ")]}" or (letter == ">" and signature[place - 1] not in "-=")
        )
        if letter in ",;" and depth == 0:
            parts.append(f"    {part.strip()}{letter}")
            part = ""
        else:
            part += letter
    rest = [f"    {part.strip()}"] if part.strip() else []
    return "\n".join([signature[: opening.start() + 1], *parts, *rest, signature[end:]])
