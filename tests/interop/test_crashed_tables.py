"""`deltalake` reads the tables that failed operations have left behind, and agrees with a naive replay of their logs.

The Rust tests of crash points (`crates/deltalog/tests/reliability/crash_points`) write the tables: every operation,
with every fault at each of its requests. Of several equal tables, only one is kept.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable

from tests.conftest import missing

ROOT = Path(__file__).resolve().parents[2]
CRASHED = Path(os.environ.get("DELTALOG_CRASHED_TABLES", ROOT / "target/tmp/crashed-tables"))
OPERATIONS = sorted(CRASHED.iterdir()) if CRASHED.exists() else []


def test_operations_have_left_tables() -> None:
    if not OPERATIONS:
        missing("the Rust tests, which leave the tables, have not been run")
    names = {operation.name for operation in OPERATIONS}
    assert {"an_overwrite_is_atomic", "a_delete_of_rows_is_atomic", "a_clean_up_is_atomic"} <= names


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_another_implementation_agrees_after_each_crash(operation: Path) -> None:
    tables = sorted(operation.iterdir())
    assert tables
    for table in tables:
        expected = json.loads((table / "expected.json").read_text())
        opened = DeltaTable(str(table / "table"))
        assert opened.version() == expected["version"], table
        root = table / "table"
        paths = sorted(
            str(Path(unquote(uri).removeprefix("file://")).relative_to(root)) for uri in opened.file_uris()
        )
        # A logical file is written as a path, followed by `#` and a deletion vector if there is one.
        # Paths in a shallow clone are URLs, from which `Path` removes slashes.
        assert paths == sorted(str(Path(file.split("#")[0])) for file in expected["files"]), table
