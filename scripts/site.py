"""Builds the documentation site in `.cache/site/html`: `python -m scripts.site`.

The documents stay where readers of the repository look for them. They are copied to their places on the site, and the
links in them are adapted. The pages of the Python reference only list names, and mkdocstrings takes the texts from the
docstrings. It is an error if the package exports a name that is on no page.
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

__all__ = ["DOCUMENTS", "REFERENCE", "RUST", "build", "gather"]

# Zensical may empty a directory `.cache` beside its settings, so the site has a separate directory.
SITE = Path(".cache/site")

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
        "Polars, DuckDB, DataFusion, Dask, Ray and Daft",
        [
            "polars.scan",
            "duckdb.source",
            "duckdb.sql",
            "datafusion.sql",
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
"""The pages of the Python reference: for each page, its title and the names that it documents. The page of errors has
all error classes.
"""

RUST = "reference/rust.md"
"""The page of the Rust crate. It is only on the site, not in the repository, because it changes with each public
function of the core.
"""

# Exported names without a page: `__version__` has no documentation, and `exceptions` repeats the names of the errors.
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

    # The site expects only the name of a language after a code fence; the words after the name are for rustdoc.
    return _LINK.sub(follow, text.replace("```rust,no_run", "```rust"))


def _with_drawn_chart(text: str, place: Path) -> str:
    """Replaces a Mermaid flowchart with a drawing, because browsers would have to load a program from another server
    to show it.
    """
    chart = _CHART.search(text)
    if chart is None:
        return text
    picture = Path("pictures", f"{place.stem}.svg")
    (place.parent / picture).parent.mkdir(exist_ok=True)
    (place.parent / picture).write_text(graph(chart[0]).svg(), "utf-8")
    return text.replace(chart[0], f"![What imports what]({picture})")


def _with_code_of_tables(text: str) -> str:
    """Replaces code in Markdown tables that the site would not show well.

    - Long names get marks where a line may break: after dots and underscores, and before capitals. Without such marks,
      a long name makes its column wide, or is broken in the middle of a word.
    - A bar in code is written as `\\|` in Markdown tables, and the site would show the backslash.
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
    # The code is inserted as HTML, because Markdown would interpret characters such as `*` and `_` in it.
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


def build(root: Path, site: Path) -> Path:
    """Gathers the pages and builds the site in the directory `site`. Returns the directory of its HTML pages.

    Raises:
        ValueError: as `gather`, or Zensical or griffe report a problem; the error contains their output. Zensical
            fails for a link that leads nowhere, but not for griffe's warnings about docstrings.
    """
    shutil.rmtree(site, ignore_errors=True)
    gather(root, site / "pages")
    (site / "pages" / RUST).write_text(rust.page(root), "utf-8")
    configuration = (root / "docs" / "mkdocs.yml").read_text("utf-8")
    python = (root / "python").resolve().as_posix()
    (site / "mkdocs.yml").write_text(configuration.replace("paths: [python]", f"paths: [{python}]"), "utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    ran = subprocess.run(command, cwd=site, capture_output=True, text=True, check=False)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout + ran.stderr)
    if ran.returncode or "griffe:" in printed:
        raise ValueError(printed)
    return site / "html"


def main() -> None:
    try:
        html = build(Path.cwd(), SITE)
    except ValueError as error:
        sys.exit(str(error))
    print(f"{html / 'index.html'} is the first page")


if __name__ == "__main__":
    main()
