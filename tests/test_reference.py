"""The pages of `docs/reference` are up to date with the code from which they are generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.drawings import PICTURES, drawings
from scripts.reference import __main__ as reference
from scripts.reference import rust
from scripts.reference.statements import FORMS, words_of_the_forms, words_of_the_parser
from scripts.reference.tables import entries, markdown

pytestmark = pytest.mark.newest


def test_the_pages_are_up_to_date(root: Path) -> None:
    files = {file.name: file.read_text("utf-8") for file in (root / reference.PAGES).glob("*.md")}
    assert files == reference.pages(root), "run python -m scripts.reference"


def test_the_pictures_are_up_to_date(root: Path) -> None:
    files = {file.name: file.read_text("utf-8") for file in (root / PICTURES).iterdir()}
    assert files == drawings(), "run python -m scripts.drawings"


def test_the_page_of_rust_has_every_public_item(root: Path) -> None:
    page = rust.page(root)
    for item in ("### Snapshot\n", "### parse_predicate\n\nParses", "pub fn count(&self) -> Result<u64>\n"):
        assert item in page
    listed = (root / rust.CRATE / "public-api.txt").read_text("utf-8")
    assert page.count("\n### ") == listed.count("\n\n")


def test_long_signatures_have_a_line_for_each_part() -> None:
    assert rust.laid_out("pub fn col( name: &str, ) -> Expr") == "pub fn col(name: &str) -> Expr"
    long = f"pub fn long( first: Map<String, (u8, u8)>, {'x' * 90}: &str, ) -> Result<()>"
    assert rust.laid_out(long).splitlines() == [
        "pub fn long(",
        "    first: Map<String, (u8, u8)>,",
        f"    {'x' * 90}: &str,",
        ") -> Result<()>",
    ]


def test_a_word_of_the_parser_without_a_form_is_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.reference.statements.FORMS", [form for form in FORMS if form[0] != "vacuum"])
    assert {"VACUUM", "vacuum", "LITE"} <= words_of_the_parser(root) - words_of_the_forms()


CODE = """
const NAMES: [&str; 2] = [
    // The first,
    // on two lines. Default: 1.
    "one",
    // The second.
    SECOND,
];
const SECOND: &str = "two";
"""


def test_entries_have_the_comments_above_them() -> None:
    found = [(entry.name, entry.about, entry.default) for entry in entries(CODE, "const NAMES:")]
    assert found == [("one", "The first, on two lines.", "1"), ("two", "The second.", "")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("    // The second.\n", "SECOND in 'const NAMES:' has no comment"),
        ("const SECOND", "the code has no constant SECOND"),
        ("const NAMES", "the code has no 'const NAMES:'"),
        ("    // on", "is not understood"),
    ],
)
def test_unknown_code_is_an_error(line: str, message: str) -> None:
    changed = CODE.replace(line, "    else" if line.startswith("    // on") else "")
    with pytest.raises(ValueError, match=message):
        list(entries(changed, "const NAMES:"))


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert markdown(("a",), [("`x | y`",)]) == "| a |\n| --- |\n| `x \\| y` |\n\n"
