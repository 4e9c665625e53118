"""Writes the pages of `docs/reference`: `python -m scripts.reference`. `--check` fails if one is not up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.reference import errors, features, procedures, properties, statements, store_options

__all__ = ["PAGES", "pages"]

PAGES = Path("docs/reference")


def pages(root: Path) -> dict[str, str]:
    """Returns the pages by their file names."""
    return {
        "errors.md": errors.page(),
        "features.md": features.page(root),
        "procedures.md": procedures.page(),
        "properties.md": properties.page(root),
        "statements.md": statements.page(root),
        "store-options.md": store_options.page(root),
    }


def main() -> None:
    root = Path.cwd()
    for name, text in pages(root).items():
        file = root / PAGES / name
        if "--check" not in sys.argv:
            file.write_text(text, "utf-8")
        elif file.read_text("utf-8") != text:
            sys.exit(f"{PAGES / name} is not up to date: run python -m scripts.reference")


if __name__ == "__main__":
    main()
