"""Lists the public API of the crate `deltalog` in `public-api.txt`, so that reviewers see how a change affects the API.

    python scripts/public_api.py            writes the list
    python scripts/public_api.py --check    fails if the list is not up to date

The list is taken from the pages of `cargo doc`: each public item with its fields or variants, its methods, and the
traits that it implements. Traits that the compiler implements by itself (`Send`, `From<T>`) are left out. Another
release of the compiler may print a signature differently, so the list names the release that created it, and `--check`
does nothing with another release.
"""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

LIST = Path("crates/deltalog/public-api.txt")
PAGES = Path("target/doc/deltalog")
# The headings after which a page lists the implementations that the compiler adds.
# The implementations that are written in the code come before these headings.
GENERATED = ("synthetic-implementations", "blanket-implementations")


class Page(HTMLParser):
    """Collects the signatures on a page: of the item itself, its methods and its trait implementations."""

    def __init__(self) -> None:
        super().__init__()
        self.item = ""
        self.methods: list[str] = []
        self.traits: list[str] = []
        self._section: dict[str, str] = {}
        self._target = ""
        self._depth = 0
        self._text: list[str] = []
        self._is_generated = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self._is_generated |= named.get("id", "").startswith(GENERATED)
        if tag == "section":
            self._section = named
        if self._target:
            self._depth += tag == self._target
        elif (tag, named.get("class")) == ("pre", "rust item-decl") or (
            tag in ("h3", "h4") and named.get("class") == "code-header" and not self._is_generated
        ):
            self._target, self._depth, self._text = tag, 1, []

    def handle_endtag(self, tag: str) -> None:
        if tag != self._target:
            return
        self._depth -= 1
        if self._depth:
            return
        signature = re.sub(r"\s+|Show \d+ (?:fields|variants)", " ", "".join(self._text)).replace(
            "]pub", "] pub"
        )
        signature = re.sub(r" +", " ", signature).strip()
        classes = self._section.get("class", "").split()
        if tag == "pre":
            self.item = signature
        elif tag == "h3" and "impl" in classes and " for " in signature:
            self.traits.append(signature.rpartition(" for ")[0].removeprefix("impl").strip())
        elif tag == "h4" and {"method", "associatedconstant"} & set(classes) and "trait-impl" not in classes:
            self.methods.append(signature)
        self._target = ""

    def handle_data(self, data: str) -> None:
        if self._target:
            self._text.append(data)


def compiler() -> str:
    """Returns the release of the compiler, such as `rustc 1.95.0`."""
    version = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
    return " ".join(version.split()[:2])


def lines() -> list[str]:
    """Returns the lines of the list after the first one, which names the compiler."""
    pages = re.findall(r'<li><a href="([^"#]+\.html)"', (PAGES / "all.html").read_text("utf-8"))
    found: list[str] = []
    for name in sorted(pages):
        page = Page()
        page.feed((PAGES / name).read_text("utf-8"))
        path = name.removesuffix(".html").replace("/", "::").rpartition("::")
        kind, _, item = path[2].partition(".")
        found.append("")
        found.append(f"{kind} {path[0]}{path[1]}{item}: {page.item}")
        found += [f"    {signature}" for signature in sorted(page.methods)]
        if traits := [trait for trait in sorted(page.traits) if trait != "StructuralPartialEq"]:
            found.append(f"    implements {', '.join(traits)}")
    return found


def main() -> None:
    subprocess.run(["cargo", "doc", "-p", "deltalog", "--no-deps", "--locked", "--quiet"], check=True)
    first = f"# The public API, as {compiler()} documents it. Made by scripts/public_api.py."
    text = "\n".join([first, *lines()]) + "\n"
    if "--check" not in sys.argv:
        LIST.write_text(text, "utf-8")
        return
    old = LIST.read_text("utf-8") if LIST.is_file() else ""
    if not old.startswith(first):
        print(f"note: {LIST} was made with another compiler, so it is not compared")
    elif old != text:
        sys.exit(f"{LIST} is not up to date: run `python scripts/public_api.py`, and review the differences")


if __name__ == "__main__":
    main()
