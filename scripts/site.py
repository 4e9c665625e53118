"""Builds the documentation site in `.cache/site/html`: `python -m scripts.site`.

Readers of the repository look for the documents where they are, so they are copied to the site's places, and their
links follow. The reference of Python is a list of names: mkdocstrings takes the texts from the docstrings. A name that
the package exports and that no page has is an error.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from scripts.drawings import drawings, graph
from scripts.reference import rust

__all__ = ["DOCUMENTS", "HTML", "REFERENCE", "RUST", "build", "gather"]

# A directory of its own: Zensical takes what is named `.cache` beside its settings for its cache, and may empty it.
SITE = Path(".cache/site")
HTML = SITE / "html"

DOCUMENTS = {
    "README.md": "index.md",
    "docs/start.md": "start.md",
    "docs/tables.md": "guides/tables.md",
    "docs/writes.md": "guides/writes.md",
    "docs/statements.md": "guides/statements.md",
    "docs/streams.md": "guides/streams.md",
    "OPERATING.md": "guides/operating.md",
    "docs/stores.md": "guides/stores.md",
    "docs/spark.md": "guides/spark.md",
    "docs/servers.md": "guides/servers.md",
    "docs/clusters.md": "guides/clusters.md",
    "docs/dbt.md": "guides/dbt.md",
    "docs/orchestration.md": "guides/orchestration.md",
    "docs/tools.md": "guides/tools.md",
    "docs/plots.md": "guides/plots.md",
    "docs/dask-ray-daft.md": "guides/dask-ray-daft.md",
    "docs/cli.md": "guides/cli.md",
    "MIGRATING.md": "moving/migrating.md",
    "docs/moving/jvm-connector.md": "moving/jvm-connector.md",
    "docs/moving/deltalake.md": "moving/deltalake.md",
    "docs/moving/iceberg.md": "moving/iceberg.md",
    "docs/moving/mixed-fleets.md": "moving/mixed-fleets.md",
    "docs/differences.md": "moving/differences.md",
    "docs/support.md": "reference/support.md",
    "docs/reference/statements.md": "reference/statements.md",
    "docs/reference/procedures.md": "reference/procedures.md",
    "docs/reference/properties.md": "reference/properties.md",
    "docs/reference/features.md": "reference/features.md",
    "docs/reference/store-options.md": "reference/store-options.md",
    "docs/reference/errors.md": "reference/what-to-do.md",
    "FUNCTIONS.md": "reference/functions.md",
    "docs/how-it-works.md": "internals/how-it-works.md",
    "ARCHITECTURE.md": "internals/architecture.md",
    "docs/internals/core.md": "internals/core.md",
    "docs/internals/binding.md": "internals/binding.md",
    "docs/internals/spark.md": "internals/spark.md",
    "docs/internals/testing.md": "internals/testing.md",
    "docs/internals/releases.md": "internals/releases.md",
    "docs/figures.md": "project/figures.md",
    "benches/README.md": "project/benches.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "LICENSE": "project/license.md",
    "docs/overlap-before.png": "guides/overlap-before.png",
    "docs/overlap-after.png": "guides/overlap-after.png",
    "benches/skipping.png": "guides/skipping.png",
    "benches/curve.png": "project/curve.png",
    "docs/site.css": "site.css",
    **{f"docs/pictures/{name}": f"internals/pictures/{name}" for name in drawings()},
}
"""For each file of the repository, its place on the site."""

REFERENCE: dict[str, tuple[str, list[str]]] = {
    "tables": (
        "Tables in Python",
        [
            "DeltaTable",
            "TableMerger",
            "TableOptimizer",
            "TableAlterer",
            "TableStream",
            "StreamBatch",
            "ScanSize",
            "ScanTask",
            "Transaction",
        ],
    ),
    "writing": (
        "Writing",
        [
            "write_deltalake",
            "convert_to_delta",
            "convert_to_deltalake",
            "plan_conversion",
            "begin_write",
            "DistributedWrite",
            "WriteTask",
            "Fragment",
            "CommitProperties",
            "WriterProperties",
            "ColumnProperties",
            "BloomFilterProperties",
        ],
    ),
    "schemas": (
        "Schemas",
        ["Schema", "Field", "PrimitiveType", "StructType", "ArrayType", "MapType", "Identity"],
    ),
    "results": (
        "Results",
        [
            "AlreadyApplied",
            "CloneResult",
            "Commit",
            "ConversionPlan",
            "Difference",
            "Metadata",
            "Progress",
            "Protocol",
            "StreamBacklog",
            "TableFeatures",
            "VacuumPlan",
            "VacuumResult",
            "Verification",
        ],
    ),
    "plots": ("Plots", ["plot.files", "plot.overlap", "plot.growth", "plot.commits"]),
    "tools": (
        "Polars, DuckDB, Dask, Ray and Daft",
        [
            "polars.scan",
            "duckdb.source",
            "pyarrow.dataset",
            "sql",
            "dask.read",
            "dask.write",
            "ray.read",
            "ray.write",
            "daft.read",
        ],
    ),
    "errors": ("Errors", []),
    "stores": ("Stores and background work", ["storage", "upkeep", "progress"]),
    "spark": ("Spark", ["spark.configure", "spark.enable", "spark.DeltaTable"]),
}
"""The pages of the reference: title, and names in the package. The page of errors has all classes of errors."""

RUST = "reference/rust.md"
"""The page of the crate, which is only on the site: it changes with each function of the core."""

# Names that have no page of their own: the first has no text, and the second repeats names of errors.
WITHOUT_PAGE = {"__version__", "exceptions"}

_CHART = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)
_LONG_NAME = re.compile(r"(?<![`\w])`([\w.]{16,})`(?!`)")
_CODE_WITH_BAR = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_BREAK = re.compile(r"(?<=[._])(?=\w)|(?<=[a-z])(?=[A-Z])")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)((?:#[^)\s]*)?)\)")


def _exported(root: Path, module: str) -> list[str]:
    """Returns the names in `__all__` of a module, without importing it."""
    for statement in ast.parse((root / "python" / "deltalog" / module).read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(statement.value)
            return names
    raise ValueError(f"{module} has no __all__")


def gather(root: Path, directory: Path) -> None:
    """Writes all pages into a directory.

    Links to files that are only in the repository become text.

    Raises:
        ValueError: a link leads nowhere, or an exported name is on no page.
    """
    for source, target in DOCUMENTS.items():
        place = directory / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix != ".md":
            shutil.copyfile(root / source, place)
        else:
            text = (root / source).read_text("utf-8")
            if source == "LICENSE":
                text = f"# License\n\n```text\n{text}```\n"
            linked = _with_links_of_site(root, text, source)
            place.write_text(_with_code_of_tables(_with_drawn_chart(linked, place)), "utf-8")
    for name, text in _reference(root):
        (directory / "reference" / f"{name}.md").write_text(text, "utf-8")


def _with_links_of_site(root: Path, text: str, source: str) -> str:
    target = DOCUMENTS[source]

    def follow(match: re.Match[str]) -> str:
        mark, words, link, heading = match.groups()
        if "://" in link or link.startswith("mailto:"):
            return match[0]
        file = os.path.normpath(PurePosixPath(source).parent / link)
        if file in DOCUMENTS:
            return (
                f"{mark}[{words}]({os.path.relpath(DOCUMENTS[file], PurePosixPath(target).parent)}{heading})"
            )
        if mark or not (root / file).exists():
            raise ValueError(f"{source}: the link {link} leads nowhere (see DOCUMENTS in scripts/site.py)")
        return words

    # The site knows a language by its name alone; what follows it is for rustdoc.
    return _LINK.sub(follow, text.replace("```rust,no_run", "```rust"))


def _with_drawn_chart(text: str, place: Path) -> str:
    """Draws a flowchart of Mermaid, for which the browser would have to load a program from elsewhere."""
    chart = _CHART.search(text)
    if chart is None:
        return text
    picture = Path("pictures", f"{place.stem}.svg")
    (place.parent / picture).parent.mkdir(exist_ok=True)
    (place.parent / picture).write_text(graph(chart[0]).svg(), "utf-8")
    return text.replace(chart[0], f"![What imports what]({picture})")


def _with_code_of_tables(text: str) -> str:
    """Replaces code in tables that the site would not show well.

    - Long names are marked where they may break: after dots and underscores, and before capitals. Without such marks, a
      name makes its column wide, or is broken in the middle of a word.
    - A bar in code is written as `\\|`, whose backslash the site would show.
    """
    lines, is_code = [], False
    for line in text.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        if line.startswith("|") and not is_code:
            line = _CODE_WITH_BAR.sub(_escaped, _LONG_NAME.sub(_marked, line))
        lines.append(line)
    return "\n".join(lines)


def _marked(match: re.Match[str]) -> str:
    return f"<code>{_BREAK.sub('<wbr>', match[1])}</code>"


def _escaped(match: re.Match[str]) -> str:
    if "\\|" not in match[2]:
        return match[0]
    code = match[2].replace("\\|", "|").strip()
    # Markdown would look for its own marks in the code.
    marked = re.sub(r"[^\w\s.,;:=()/-]", lambda mark: f"&#{ord(mark[0])};", code)
    return f"<code>{marked}</code>"


def _reference(root: Path) -> Iterator[tuple[str, str]]:
    errors = _exported(root, "errors.py")
    listed = {name for _, names in REFERENCE.values() for name in names}
    missing = set(_exported(root, "__init__.py")) - listed - set(errors) - WITHOUT_PAGE
    if missing:
        raise ValueError(
            f"no page of the reference has {', '.join(sorted(missing))}: see REFERENCE in scripts/site.py"
        )
    for page, (title, names) in REFERENCE.items():
        paths = [f"errors.{name}" for name in errors] if page == "errors" else names
        yield page, f"# {title}\n\n" + "\n".join(f"::: deltalog.{path}\n" for path in paths)


def build(root: Path) -> None:
    """Gathers the pages and builds the site.

    Raises:
        ValueError: as `gather`, or with what Zensical and griffe print. Zensical counts a link that leads nowhere as an
            error, but not what griffe says about a docstring.
    """
    shutil.rmtree(root / SITE, ignore_errors=True)
    gather(root, root / SITE / "pages")
    (root / SITE / "pages" / RUST).write_text(rust.page(root), "utf-8")
    shutil.copyfile(root / "docs" / "mkdocs.yml", root / SITE / "mkdocs.yml")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    ran = subprocess.run(command, cwd=root / SITE, capture_output=True, text=True, check=False)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout + ran.stderr)
    if ran.returncode or "griffe:" in printed:
        raise ValueError(printed)


def main() -> None:
    try:
        build(Path.cwd())
    except ValueError as error:
        sys.exit(str(error))
    print(f"{HTML / 'index.html'} is the first page")


if __name__ == "__main__":
    main()
