"""The documentation site builds without a warning, has all pages, and loads nothing from other servers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scripts import site

# For each HTML element: the attribute whose URL a browser loads automatically.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class Loaded(HTMLParser):
    """Collects the URLs that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if named.get("rel") != "canonical":
            self.links.add(named.get(LOADED.get(tag, ""), "") or "")


@pytest.fixture(scope="module")
def html(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.build(root, tmp_path_factory.mktemp("site"))


@pytest.mark.newest
def test_nothing_is_loaded_from_other_servers(html: Path) -> None:
    pages = sorted(html.rglob("*.html"))
    assert len(pages) >= len([page for page in site.DOCUMENTS.values() if page.endswith(".md")])
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text("utf-8"))
        assert not [link for link in loaded.links if "//" in link], page
    for style in html.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text("utf-8")), style


@pytest.mark.newest
def test_what_people_search_for_is_in_the_index(html: Path) -> None:
    index = (html / "search.json").read_text("utf-8")
    for words in (
        "foreachBatch",
        "write_deltalake",
        "CommitConflictError",
        "S3DynamoDBLogStore",
        "plan_vacuum",
    ):
        assert words in index, words


def test_every_document_and_every_exported_name_has_a_page(root: Path) -> None:
    documents = {str(page.relative_to(root)) for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]}
    assert documents - set(site.DOCUMENTS) == set()
    pages = {page for page in site.DOCUMENTS.values() if page.endswith(".md")}
    pages |= {site.RUST, *(f"reference/{name}.md" for name in site.REFERENCE)}
    assert set(re.findall(r"[\w/-]+\.md", (root / "docs" / "mkdocs.yml").read_text("utf-8"))) == pages


def small(root: Path, readme: str, names: str = "[]") -> Path:
    """Creates a repository with one document that has the given text."""
    for document in site.DOCUMENTS:
        (root / document).parent.mkdir(parents=True, exist_ok=True)
        (root / document).write_text("")
    (root / "README.md").write_text(readme)
    (root / "Cargo.toml").write_text("")
    package = root / "python" / "deltalog"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"__all__ = {names}")
    (package / "errors.py").write_text("__all__ = ['DeltaError']")
    return root


def test_links_follow_their_pages(tmp_path: Path) -> None:
    text = (
        "[a](docs/spark.md#here) [b](OPERATING.md) [c](#there) [d](Cargo.toml) [e](https://example.org/x.md)"
        "\n```rust,no_run\n```"
    )
    site.gather(small(tmp_path, text), tmp_path / "pages")
    assert (tmp_path / "pages" / "index.md").read_text() == (
        "[a](guides/spark.md#here) [b](guides/operating.md) [c](#there) d [e](https://example.org/x.md)"
        "\n```rust\n```"
    )


def test_a_bar_in_the_code_of_a_table_is_shown_without_its_backslash(tmp_path: Path) -> None:
    rows = "| `a` | `x [b \\| *]` or ``c.`d` \\| e`` |\n\n`f \\| g`"
    site.gather(small(tmp_path, rows), tmp_path / "pages")
    assert (tmp_path / "pages" / "index.md").read_text() == (
        "| `a` | <code>x &#91;b &#124; &#42;&#93;</code> or <code>c.&#96;d&#96; &#124; e</code> |\n\n`f \\| g`"
    )


def test_a_flowchart_is_drawn(tmp_path: Path) -> None:
    chart = "```mermaid\nflowchart TD\n  a --> b\n  a --> c\n  b --> d\n```"
    site.gather(small(tmp_path, f"before\n\n{chart}\n\nafter"), tmp_path / "pages")
    assert (tmp_path / "pages" / "index.md").read_text() == (
        "before\n\n![What imports what](pictures/index.svg)\n\nafter"
    )
    drawn = (tmp_path / "pages" / "pictures" / "index.svg").read_text()
    assert (drawn.count("<rect"), drawn.count("<polyline")) == (4, 3)


def test_long_names_in_tables_may_break_at_their_parts(tmp_path: Path) -> None:
    rows = "`delta.appendOnlyTables_x` `short.name`\n| `delta.appendOnlyTables_x` | `short.name` |"
    site.gather(small(tmp_path, f"{rows}\n```\n| `delta.appendOnlyTables_x` |\n```"), tmp_path / "pages")
    assert (tmp_path / "pages" / "index.md").read_text() == (
        "`delta.appendOnlyTables_x` `short.name`\n"
        "| <code>delta.<wbr>append<wbr>Only<wbr>Tables_<wbr>x</code> | `short.name` |\n"
        "```\n| `delta.appendOnlyTables_x` |\n```"
    )


@pytest.mark.parametrize(
    ("readme", "names", "message"),
    [
        ("[a](docs/no.md)", "[]", r"README.md: the link docs/no.md leads nowhere"),
        ("![a](Cargo.toml)", "[]", r"README.md: the link Cargo.toml leads nowhere"),
        ("", "['DeltaError', 'Nameless']", r"no page of the reference has Nameless"),
    ],
)
def test_what_the_site_lacks_is_named(tmp_path: Path, readme: str, names: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        site.gather(small(tmp_path, readme, names), tmp_path / "pages")
