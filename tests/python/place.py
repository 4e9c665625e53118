"""Reads the content of a table's directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tree(table: Path) -> dict[str, bytes]:
    """Returns the content of every file below `table`, by path."""
    return {str(file.relative_to(table)): file.read_bytes() for file in table.rglob("*") if file.is_file()}


def data_files(table: Path) -> list[str]:
    """Returns all files outside of the log, including files that no version refers to."""
    return sorted(name for name in tree(table) if not name.startswith("_delta_log/"))


def commit_file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def actions(table: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in commit_file(table, version).read_text().splitlines()]
